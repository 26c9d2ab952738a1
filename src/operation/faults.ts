/**
 * The places where a crash is worth rehearsing (S2.11, S6.6). Nothing happens there unless a test or `rehearse` injects
 * something: a throw (as good as a crash for everything after it) or a wait for the process to be killed.
 */

/** In the order in which an attempt passes them. Names are public: add, never rename. */
export const FAULT_POINTS = [
  'before_claim',
  'after_intent',
  'after_effect',
  'after_verify',
  'after_commit',
] as const;

export type FaultPoint = (typeof FAULT_POINTS)[number];

export interface FaultPlace {
  point: FaultPoint;
  /** `rollback` while an effect is being undone. */
  about: 'effect' | 'rollback';
  /** The operation acted for: a rollback's own while rolling back. */
  operationId: string;
  taskId: string;
  attempt: number;
}

/** Awaited at each point. What it throws is never caught by the operation. */
export type FaultPoints = (place: FaultPlace) => Promise<void>;

export const noFaults: FaultPoints = () => Promise.resolve();
