/**
 * The promises that hold in every scenario, judged by what the target counts. Pure.
 *
 * 1. An effect takes place at most once, and is undone at most once.
 * 2. What is reported about the effect is what the target counts: `completed` and one, `none` and nothing, `rolled_back`
 *    and nothing that stands.
 * 3. The task ends as the scenario allows, a person is alerted where one is needed, and the audit is intact.
 */
import { END } from './endings.ts';
import type { Terms } from './terms.ts';

export interface Evidence {
  terms: Terms;
  end: string;
  allowed: readonly string[];
  /** How often the effect took place; where `undone` is null, how often it stands. Null: the target could not be asked. */
  effects: number | null;
  undone: number | null;
  /** What is counted with the arguments that an edit replaced; null where the count does not look at them. */
  replaced: number | null;
  alerts: readonly string[];
  auditBreak: string | null;
  /** What the scenario itself saw go wrong. */
  objections: readonly string[];
}

export function brokenPromises(evidence: Evidence): string[] {
  const { end, allowed, alerts, auditBreak, objections } = evidence;
  const isAllowed = allowed.includes(end);
  return [
    ...objections,
    ...(evidence.effects === null ? [] : countedWrong(evidence, evidence.effects)),
    ...those([
      (evidence.replaced ?? 0) > 0,
      `the target counts ${evidence.replaced} with the arguments that an approver replaced`,
    ]),
    ...those(
      [!isAllowed, `ended "${end}"; the promise is "${allowed.join('" or "')}"`],
      [end === END.person && alerts.length === 0, 'needs a person, and no alert was raised'],
      [auditBreak !== null, `the audit is broken: ${auditBreak}`],
    ),
  ];
}

function countedWrong({ terms, end, undone }: Evidence, effects: number): string[] {
  const standing = effects - (undone ?? 0);
  if (terms.effect === 'safe')
    return those([effects !== 0, `a safe action changes nothing, and the target counts ${effects}`]);
  return those(
    [effects > 1, `one operation, and the target counts ${effects} effects`],
    [undone !== null && undone > 1, `undone ${undone} times`],
    [undone !== null && undone > effects, `undone ${undone} times, and done ${effects} times`],
    [
      end === END.completed && standing < 1,
      `completed, and the target counts no effect of this operation${undone ? ' that stands' : ''}`,
    ],
    [saysNothingApplied(end) && standing !== 0, `reported as not applied, and the target counts ${standing}`],
    [
      saysRolledBack(end) && standing > 0,
      `reported as rolled back, and the target counts ${standing} that ${standing === 1 ? 'stands' : 'stand'}` +
        (undone === null ? ' (if that count includes what was undone, give `undone`)' : ''),
    ],
  );
}

const saysNothingApplied = (end: string): boolean => end === END.refused || end === END.cancelled;
const saysRolledBack = (end: string): boolean => end === END.undone || end === END.cancelledAndUndone;

const those = (...checks: [boolean, string][]): string[] =>
  checks.flatMap(([isBroken, message]) => (isBroken ? [message] : []));
