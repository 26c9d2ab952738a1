/**
 * S2.4 and S5 as a table: what a lookup's answer about an earlier attempt allows. Pure.
 */
import type { AttemptPurpose } from '../task/event.ts';
import type { EffectClass } from '../task/plan.ts';

export type LookupKind = 'none' | 'plain' | 'conclusive';
/** What a lookup found; `none`: there is no lookup, `threw`: it could not answer this time. */
export type Found = 'applied' | 'not_applied' | 'unknown' | 'threw' | 'none';

export interface Doubt {
  effect: EffectClass;
  /** False for a keyless call: then only what is proven unsent is sent again (S1.7). */
  autoRetry: boolean;
  lookup: LookupKind;
  found: Found;
  purpose: AttemptPurpose;
  /** The earlier attempt's deadline plus settleMs has passed: nothing of it is on its way any more. */
  isSettled: boolean;
  /** The last look: what can't be told now goes to a person (S5.3). */
  isFinal: boolean;
}

export type Verdict =
  /** The effect is there: verify and commit. */
  | 'adopt'
  /** Send (again), after the precondition. */
  | 'execute'
  /** Nothing was applied and nothing will be. */
  | 'release'
  /** The earlier request may still land: look again once it can't. */
  | 'wait'
  /** The lookup could not answer this time and may the next. */
  | 'lookAgain'
  | 'attention';

export function judge(doubt: Doubt): Verdict {
  if (doubt.found === 'applied') return 'adopt';
  return doubt.purpose === 'settle' ? judgeToSettle(doubt) : judgeToExecute(doubt);
}

/** Whether the earlier attempt is known to have applied nothing, now and for good. */
export function isProvenNotApplied(doubt: Doubt): boolean {
  return doubt.effect === 'safe' || (mayBeProven(doubt) && doubt.isSettled);
}

const mayBeProven = ({ lookup, found }: Doubt): boolean => lookup === 'conclusive' && found === 'not_applied';

/** For an operation that is not sent again, whatever comes of it: an end with nothing applied needs a proof. */
export function judgeToSettle(doubt: Doubt): Exclude<Verdict, 'adopt' | 'execute'> {
  if (isProvenNotApplied(doubt)) return 'release';
  return mayBeProven(doubt) ? 'wait' : untold(doubt);
}

function judgeToExecute(doubt: Doubt): Verdict {
  const isDeduped = doubt.effect === 'conditional' && doubt.autoRetry;
  if (isDeduped || isProvenNotApplied(doubt)) return 'execute';
  return mayBeProven(doubt) ? 'wait' : untold(doubt);
}

const untold = ({ found, isFinal }: Doubt): 'lookAgain' | 'attention' =>
  found === 'threw' && !isFinal ? 'lookAgain' : 'attention';
