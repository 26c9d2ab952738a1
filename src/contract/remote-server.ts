/**
 * A task that another server keeps for us (M8.4), and the seam through which it is supervised (S8.4): what answers here is
 * an MCP connection (src/upstream), in tests a fake that is gated by hand. No I/O here.
 */
import type { JsonObject } from '../task/json.ts';

/** Enough to find the task again from any process. Plain JSON: it is journaled. */
export interface RemoteTaskHandle {
  /** The upstream server's identity, as the ledger knows it. */
  server: string;
  /** The tool that was called there. */
  tool: string;
  /** The server's own id of its task. */
  taskId: string;
  /** What the server asks for, in milliseconds; bounded by whoever polls. */
  pollIntervalMs: number;
  /** From its creation until the server may forget it; null: it says nothing, or never. */
  ttlMs: number | null;
}

/** What a status request came back with. */
export type RemoteStatus =
  | { kind: 'working'; message?: string; pollIntervalMs?: number }
  /** By the remote's keys; each is one MCP request (`elicitation/create` and the like). */
  | { kind: 'input_required'; requests: JsonObject; message?: string; pollIntervalMs?: number }
  /** The tool's answer as the server gave it: `content`, `structuredContent`, `isError`. */
  | { kind: 'completed'; result: JsonObject }
  | { kind: 'failed'; message: string; code?: number }
  | { kind: 'cancelled'; message?: string }
  /** It knows no such task: forgotten after its ttl, or never known. */
  | { kind: 'not_found' };

/**
 * Control calls about one server's tasks. Each may reject: then nothing is known of the task. Aborting `signal` stops the
 * request of ours, never the remote task. `status` is safe to repeat and `cancel` idempotent.
 */
export interface RemoteServer {
  /** The result is in it once there is one. */
  status(task: RemoteTaskHandle, signal: AbortSignal): Promise<RemoteStatus>;
  /** Asks; how the task ends is read by `status`. */
  cancel(task: RemoteTaskHandle, signal: AbortSignal): Promise<void>;
  /** Answers by the remote's own keys. Rejects with `AnswerRefused` where another try is of no use. */
  answer(task: RemoteTaskHandle, responses: JsonObject, signal: AbortSignal): Promise<void>;
}

/** By identity; undefined where this process has no such server. */
export type RemoteServers = (server: string) => RemoteServer | undefined;

/** An answer that the server will not take, however often it is sent: what it asks for is open again. */
export class AnswerRefused extends Error {
  override readonly name = 'AnswerRefused';
}
