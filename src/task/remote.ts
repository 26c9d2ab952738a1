/** A task that another server keeps for ours (M8.4), as the journal has it. Plain JSON, pure. */
import type { JsonObject } from './json.ts';

/** Enough to find it again from any process; what contract/remote-server.ts calls a handle. */
export interface RemoteRef {
  server: string;
  tool: string;
  taskId: string;
  pollIntervalMs: number;
  ttlMs: number | null;
}

export type RemoteEndKind = 'completed' | 'failed' | 'cancelled' | 'not_found';

/** What the server said of it last, without the result. */
export interface RemoteSeen {
  kind: 'working' | 'input_required' | RemoteEndKind;
  message?: string;
  /** Of `failed`. */
  code?: number;
  /** Of `input_required`, by the remote's keys. */
  requests?: JsonObject;
}

export function isRemoteEnd(kind: RemoteSeen['kind']): kind is RemoteEndKind {
  return kind !== 'working' && kind !== 'input_required';
}
