/** How a task may end after an attempt whose outcome nobody heard (S2.4, S5): the same whatever the attempt died of. */
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import type { Terms } from '../terms.ts';

/** The effect took place. Whoever can be asked says so; a target that dedupes is simply sent it again. */
export function afterDone({ effect, lookup, transactional }: Terms): End[] {
  if (transactional || effect !== 'unsafe' || lookup !== 'none') return [END.completed];
  return [END.person];
}

/** The effect did not take place. Of an unsafe action only a conclusive look-up can say so for good. */
export function afterNothing({ effect, lookup, transactional }: Terms): End[] {
  if (transactional || effect !== 'unsafe' || lookup === 'conclusive') return [END.completed];
  return [END.person];
}

/** As given; without any retry in the contract a failed attempt is settled and never sent again. */
export function withRetry({ retries }: Terms, ends: End[]): End[] {
  return retries > 0 ? ends : [...ends, END.refused, END.person];
}
