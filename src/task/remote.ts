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

/** What an activity about a remote task answers. */
export type RemoteCallAnswer =
  /** Where it stands by the ledger. `dueInMs`: until it is polled next. */
  | {
      kind: 'facts';
      isEnded: boolean;
      seen: RemoteSeen | null;
      failures: number;
      lastError: string | null;
      answered: string[];
      /** Answers that the server takes never. */
      refused?: string[];
      dueInMs: number;
      isCancelSent: boolean;
    }
  /** Nothing was written; try again. */
  | {
      kind: 'wait';
      waitMs: number;
      why: 'busy' | 'not_due' | 'superseded' | 'under_way' | 'left_behind' | 'lost' | 'stopped';
    }
  /** The ledger has no such task. */
  | { kind: 'unknown' };

/** What the watching workflow tells the task. */
export type RemoteReport =
  | {
      kind: 'seen';
      seen: RemoteSeen | null;
      failures: number;
      lastError: string | null;
      answered: string[];
      refused?: string[];
    }
  | { kind: 'ended'; how: RemoteEndKind; message?: string };
