/** S8: the grant that an attempt works under, where its plan names a resource. */
export interface HeldLease {
  id: string;
  resource: string;
  /** Grows with each grant. */
  fence: number;
}

/**
 * The right to send one operation's effect, as the ledger granted it (S2.3).
 *
 * Ordered by `(ordinal, attempt, generation)`: a store that has seen a higher one refuses a lower one. `claimedUntil`
 * is in milliseconds since the epoch by the ledger database's clock; no other clock may judge it (S8.5).
 */
export interface Claim {
  operationId: string;
  taskId: string;
  /** Which run of the operation: grows when a key is called again after an end with nothing sent (S1.6). */
  ordinal: number;
  /** The workflow's own attempt counter; only grows, never the engine's attempt number (S2.12). */
  attempt: number;
  /** Grows by one with each claim of the row. */
  generation: number;
  claimedUntil: number;
  /** S8.3: whoever writes under this claim is stale once a newer fence of the resource was seen. */
  lease?: HeldLease;
}

/** The fence handed to handlers and stores: `ordinal.attempt.generation`. Compare with {@link compareFences}. */
export type Fence = string;

export function fenceOf(claim: Pick<Claim, 'ordinal' | 'attempt' | 'generation'>): Fence {
  return `${claim.ordinal}.${claim.attempt}.${claim.generation}`;
}

/** Negative when `a` is older than `b`, 0 when equal, positive when newer. */
export function compareFences(a: Fence, b: Fence): number {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)];
  for (const index of [0, 1, 2]) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
