import type { ActionsByName } from '../contract/action-named.ts';
import { HoldfastError } from '../contract/error.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { TaskEngine } from './engine.ts';
import type { Hints } from './hints.ts';

/** What the parts of the client share. */
export interface ClientDeps {
  engine: TaskEngine;
  ledger: Ledger;
  actions: ActionsByName;
  /** For sensitive fields (S2.10); undefined when no key is configured. */
  hashKey: Uint8Array | undefined;
  hints: Hints;
  /** A worker of this process runs most of what this client starts, so that hints tell of its end. */
  hearsEnds: boolean;
  /** Wall clock of this process: for display and local deadlines only, decides nothing durable. */
  now: () => number;
}

/** M2.6: unknown, foreign and expired ids read alike. */
export function taskNotFound(): HoldfastError {
  return new HoldfastError('task_not_found', 'There is no task of that id that you may see.');
}

/** A read by key: nobody can tell a call that was never made from one that has not arrived. */
export function nothingUnderKey(): HoldfastError {
  return new HoldfastError(
    'task_not_found',
    'Nothing is reserved under this key for this tool just now. A call under it may still be on its way.',
    { details: { by: 'idempotencyKey' } },
  );
}

export function isCode(error: unknown, code: HoldfastError['code']): boolean {
  return error instanceof HoldfastError && error.code === code;
}
