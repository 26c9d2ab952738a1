/** How a procedure may end, by what its steps promise that stand when it stops. Pure. */
import { ActionFailure } from '../../../contract/handlers.ts';
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import type { Script } from '../scripts.ts';
import type { CourseStep } from './course.ts';
import type { KnownStep } from './procedure-scenario.ts';

export const refuses = (): Promise<never> => Promise.reject(ActionFailure.permanent('rehearsed: refused'));
export const refused: Script = { execute: refuses };

/** What of these is left when everything that can be undone was; `none` where they have no effect. */
function undoingEnds(steps: readonly KnownStep[], whenNone: End, whenUndone: End): End[] {
  const effects = steps.filter(({ terms }) => terms.effect !== 'safe');
  if (effects.length === 0) return [whenNone];
  return effects.every(({ terms }) => terms.noRollback === null) ? [whenUndone] : [END.person];
}

export const failedAfter = (steps: readonly KnownStep[]): End[] => [
  ...undoingEnds(steps, END.refused, END.undone),
  END.completed,
];
export const cancelledAfter = (steps: readonly KnownStep[]): End[] =>
  undoingEnds(steps, END.cancelled, END.cancelledAndUndone);

/** Steps that may stand when this one ends: all that had not begun after it. */
export function before(step: CourseStep, steps: readonly KnownStep[]): KnownStep[] {
  return steps.filter((each) => each.step !== step.step && !each.after.includes(step.step));
}
