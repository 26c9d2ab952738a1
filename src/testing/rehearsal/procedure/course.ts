/** The course of a procedure as its task tells it: steps in the order they began, and what was committed when. Pure. */

/** What a journal says of a step, as far as a rehearsal looks at it. */
export interface Told {
  type: string;
  seq: number;
  data: { step?: string; action?: string; undo?: boolean };
}

export interface Course {
  /** In the order they began. */
  steps: CourseStep[];
  /** Those that stand and can be undone, oldest commit first. */
  committed: string[];
}

export interface CourseStep {
  step: string;
  action: string;
  /** Those that had ended before this one began. */
  after: string[];
}

export function courseOf(events: readonly Told[]): Course {
  const steps: CourseStep[] = [];
  const closed: string[] = [];
  const committed: string[] = [];
  for (const { type, data } of events) {
    if (data.step === undefined) continue;
    if (type === 'step_opened')
      steps.push({ step: data.step, action: data.action ?? '', after: [...closed] });
    if (type !== 'step_closed') continue;
    closed.push(data.step);
    if (data.undo === true) committed.push(data.step);
  }
  return { steps, committed };
}

/** What is wrong with the order in which committed steps were undone: newest first (S6.3). */
export function orderBroken(committed: readonly string[], undone: readonly string[]): string | null {
  const expected = committed.filter((step) => undone.includes(step)).toReversed();
  const found = undone.filter((step) => committed.includes(step));
  if (expected.join() === found.join()) return null;
  return `undone in the order ${found.join(', ')}; the promise is ${expected.join(', ')}`;
}
