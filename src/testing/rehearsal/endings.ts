/** How a task of a rehearsal ended, in the few words its verdict is about. */
import type { TaskOutcome } from '../../task/outcome.ts';

/** The ends that some promise allows; any other is named by its status and effect. */
export const END = {
  completed: 'completed',
  refused: 'failed, nothing applied',
  undone: 'failed, rolled back',
  cancelled: 'cancelled, nothing applied',
  cancelledAndUndone: 'cancelled, rolled back',
  person: 'needs a person',
} as const;

export type End = (typeof END)[keyof typeof END];

const EFFECTS: Record<string, string> = { none: 'nothing applied', rolled_back: 'rolled back' };

export function endOf({ status, effect }: Pick<TaskOutcome, 'status' | 'effect'>): string {
  if (status === 'completed') return END.completed;
  if (status === 'needs_attention') return END.person;
  if (status !== 'failed' && status !== 'cancelled') return `still ${status}`;
  return `${status}, ${EFFECTS[String(effect)] ?? `effect ${effect}`}`;
}
