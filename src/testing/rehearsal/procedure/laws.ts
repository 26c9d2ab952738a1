/**
 * The promises a procedure's rehearsal holds it to (S6.3), step by step, by what each step's own target counts. Pure.
 *
 * 1. No step takes place twice, and none is undone twice.
 * 2. What the task says of a step is what its target counts: `applied` and one that stands, `none` and `rolled_back` none.
 * 3. A task that ends undone or without effect leaves nothing standing; what was committed was undone newest first.
 */
import { END } from '../endings.ts';
import type { StepReport } from '../report.ts';
import { orderBroken } from './course.ts';

export interface ProcedureEvidence {
  end: string;
  allowed: readonly string[];
  steps: readonly StepReport[];
  committed: readonly string[];
  /** In the order in which their rollback was first called. */
  undone: readonly string[];
  alerts: readonly string[];
  auditBreak: string | null;
  objections: readonly string[];
}

const LEAVES_NOTHING: readonly string[] = [END.refused, END.undone, END.cancelled, END.cancelledAndUndone];

export function brokenByProcedure(evidence: ProcedureEvidence): string[] {
  const { end, allowed, steps, committed, undone, alerts, auditBreak, objections } = evidence;
  const order = orderBroken(committed, undone);
  return [
    ...objections,
    ...steps.flatMap((step) => brokenByStep(step, LEAVES_NOTHING.includes(end))),
    ...(order === null ? [] : [order]),
    ...(allowed.includes(end) ? [] : [`ended "${end}"; the promise is "${allowed.join('" or "')}"`]),
    ...(end === END.person && alerts.length === 0 ? ['needs a person, and no alert was raised'] : []),
    ...(auditBreak === null ? [] : [`the audit is broken: ${auditBreak}`]),
  ];
}

function brokenByStep({ step, said, effects, undone }: StepReport, leavesNothing: boolean): string[] {
  if (effects === null) return [];
  const standing = effects - (undone ?? 0);
  const checks: [boolean, string][] = [
    [effects > 1, `the target counts ${effects} effects`],
    [(undone ?? 0) > 1, `undone ${undone} times`],
    [undone !== null && undone > effects, `undone ${undone} times, and done ${effects} times`],
    [said === 'applied' && standing < 1, 'reported as applied, and the target counts none that stands'],
    [said === 'none' && standing !== 0, `reported as not applied, and the target counts ${standing}`],
    [
      (said === 'rolled_back' || leavesNothing) && standing > 0,
      `to be undone, and the target counts ${standing} standing`,
    ],
    [said === null && effects !== 0, `never begun, and the target counts ${effects}`],
  ];
  return checks.flatMap(([isBroken, message]) => (isBroken ? [`step ${step}: ${message}`] : []));
}
