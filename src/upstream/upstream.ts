/**
 * The seam between the tools of other people's MCP servers and what we make of them: `src/upstream/connection` answers it
 * over stdio or HTTP, tests with a fake that is gated by hand.
 */
import type { RemoteServer, RemoteTaskHandle } from '../contract/remote-server.ts';
import type { Json, JsonObject } from '../task/json.ts';

/** A tool as its server lists it, nothing changed. */
export interface UpstreamTool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  annotations?: JsonObject;
  /** 2025-11-25 tasks: `forbidden` (default), `optional`, `required`. */
  taskSupport?: 'forbidden' | 'optional' | 'required';
}

export interface UpstreamCall {
  tool: string;
  args: JsonObject;
  /** Besides what the protocol puts there: where a tool takes its key. */
  meta?: JsonObject;
  /** HTTP upstreams only. */
  headers?: Readonly<Record<string, string>>;
  /** Aborted: the upstream is told under the id of its own request (M8.3). */
  signal: AbortSignal;
  onProgress?: (progress: { progress: number; total?: number; message?: string }) => void;
}

/** How one call ended. What is in doubt is never sent again by whoever answers this. */
export type UpstreamReply =
  /** The tool's answer, exact numbers kept. `isError`: the tool says it failed; what it did is the tool's business. */
  | { kind: 'answer'; isError: boolean; content: Json[]; structured: Json | null; raw: JsonObject }
  /** The server goes on with it as a task of its own (M8.4). */
  | { kind: 'task'; task: RemoteTaskHandle }
  /** A JSON-RPC error: the server refused the request. */
  | { kind: 'refused'; code: number; message: string }
  /** Nothing of it reached the server. */
  | { kind: 'not_sent'; message: string; retryAfterMs?: number }
  /** It was sent, and no answer came: lost connection, dead process, deadline, or `signal`. */
  | { kind: 'in_doubt'; message: string };

/** What tools are called by, and the tasks that their server makes of calls. */
export type UpstreamLine = Pick<Upstream, 'call' | 'remote'>;

export interface Upstream {
  /** What the ledger knows the server by: survives every renaming of tools and of the server's entry. */
  readonly identity: string;
  /** Read anew. Rejects where no server answers. */
  tools(signal: AbortSignal): Promise<UpstreamTool[]>;
  /** Never rejects. */
  call(call: UpstreamCall): Promise<UpstreamReply>;
  readonly remote: RemoteServer;
  close(): Promise<void>;
}
