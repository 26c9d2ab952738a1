import type { Claim } from '../task/claim.ts';
import type { Attempt } from './attempt.ts';

/** S8.3: the newest fence seen of the claim's resource, where it is newer than the claim's own. */
export async function newerFence(
  { deps }: Pick<Attempt, 'deps'>,
  { lease }: Claim,
): Promise<number | undefined> {
  if (lease === undefined) return undefined;
  const newest = await deps.ledger.newestFence(lease.id);
  return newest > lease.fence ? newest : undefined;
}
