/**
 * A user's handler inside the ledger's transaction (S2.8).
 *
 * Invariants:
 * 1. It has a second; then its signal aborts and its transaction takes no more statements, since a statement on an ended
 *    transaction would run on its own, outside.
 * 2. What is undone is rolled back as a whole, so it provably applied nothing.
 */
import type { Transitions } from '../ledger/ledger.ts';
import type { Failure } from '../task/failure.ts';
import type { Attempt } from './attempt.ts';

const TRANSACTION_MS = 1_000;

export interface TransactionSite {
  transitions: Transitions;
  /** For the handler; closed with the transaction. */
  tx: unknown;
  /** End each of the handler's calls. */
  signals: readonly AbortSignal[];
  /** Rolls everything back. */
  undo: (failure: Failure) => never;
}

export type Transacted<T> = { kind: 'ended'; value: T } | { kind: 'undone'; failure: Failure };

/** Thrown out of the transaction to roll it back. */
class Undone extends Error {
  constructor() {
    super('the transaction of an attempt is rolled back');
  }
}

/** Throws what the ledger throws, and what `work` throws by itself; both roll back. */
export async function inTransaction<T>(
  attempt: Attempt,
  work: (site: TransactionSite) => Promise<T>,
): Promise<Transacted<T>> {
  const reason: { failure: Failure | null } = { failure: null };
  const undo = (failure: Failure): never => {
    reason.failure = failure;
    throw new Undone();
  };
  try {
    const value = await attempt.deps.ledger.transaction((transitions, tx) =>
      guarded(attempt, transitions, tx, undo, work),
    );
    return { kind: 'ended', value };
  } catch (error) {
    if (attempt.fault !== null) throw attempt.fault.error as Error;
    // Thrown inside, it kept the transaction from committing, whatever the ledger made of the error.
    if (reason.failure === null) throw error;
    attempt.runtime.signal.throwIfAborted();
    return { kind: 'undone', failure: reason.failure };
  }
}

async function guarded<T>(
  attempt: Attempt,
  transitions: Transitions,
  tx: unknown,
  undo: TransactionSite['undo'],
  work: (site: TransactionSite) => Promise<T>,
): Promise<T> {
  const guard = guardTransaction(tx);
  const budget = new AbortController();
  const timer = setTimeout(() => budget.abort(), TRANSACTION_MS);
  try {
    return await work({ transitions, tx: guard.tx, signals: [attempt.runtime.signal, budget.signal], undo });
  } finally {
    clearTimeout(timer);
    guard.close();
  }
}

/** Rolled back with everything else, so that even an unclassified exception is known to have applied nothing. */
export const nothingApplied = (failure: Failure): Failure =>
  failure.kind === 'unknown' ? { ...failure, kind: 'notApplied', code: 'attempt_failed' } : failure;

/** Kysely's plugin shape, known by structure. */
interface Plugin {
  transformQuery<Args extends { node: unknown }>(args: Args): Args['node'];
  transformResult(args: { result: unknown }): Promise<unknown>;
}

function guardTransaction(tx: unknown): { tx: unknown; close: () => void } {
  let isOpen = true;
  const plugin: Plugin = {
    transformQuery: ({ node }) => {
      if (!isOpen)
        throw new Error('the ledger transaction of this attempt is over; nothing more may be written in it');
      return node;
    },
    transformResult: ({ result }) => Promise.resolve(result),
  };
  return {
    tx: isPluggable(tx) ? tx.withPlugin(plugin) : tx,
    close: () => {
      isOpen = false;
    },
  };
}

function isPluggable(tx: unknown): tx is { withPlugin(plugin: Plugin): unknown } {
  return typeof tx === 'object' && tx !== null && 'withPlugin' in tx && typeof tx.withPlugin === 'function';
}
