/** Where something may happen to an attempt, in words: the fault points of the protocol (S2.11). */
import { FAULT_POINTS } from '../../../operation/faults.ts';
import type { FaultPoint } from '../../../operation/faults.ts';

const WHERE: Record<FaultPoint, string> = {
  before_claim: 'before the claim',
  after_intent: 'between intent and call',
  after_effect: 'between call and verify',
  after_verify: 'between verify and commit',
  after_commit: 'after the commit',
};

export interface Point {
  point: FaultPoint;
  where: string;
}

export const POINTS: readonly Point[] = FAULT_POINTS.map((point) => ({ point, where: WHERE[point] }));

/** Between intent and commit: whatever comes then meets an effect that is under way. */
export const MIDWAY = POINTS.filter(({ point }) => point !== 'before_claim' && point !== 'after_commit');
