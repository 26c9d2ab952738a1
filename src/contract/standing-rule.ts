/**
 * Standing rules ("always allow", S4.5): what a person allowed in advance, as data. Pure.
 *
 * Invariants; the stricter reading wherever there are two:
 * 1. A rule covers calls of one tenant, action and contract version, and of those only what its predicate matches: exactly
 *    one call's arguments, or every one of its comparisons. A value that is absent or of another type matches nothing.
 * 2. It counts as the word of whoever made it, with the roles they had then: whoever may not approve a call lets it
 *    through by no rule, the requester its own least of all (unless policy says so).
 * 3. Where policy asks for several approvers, as many different people must each have made a rule that covers the call.
 * 4. No rule answers a challenge (S4.6).
 * 5. It is judged when a call is planned and frozen into the plan; an edit is judged without it.
 */
import type { Json, JsonObject } from '../task/json.ts';
import type { Plan, PlanApproval, Principal } from '../task/plan.ts';
import type { ActionContract } from './define-action.ts';
import { parseDuration } from './duration.ts';
import { HoldfastError } from './error.ts';
import { LIMITS } from './limits.ts';
import type { PlannedOperation } from './plan-operation.ts';
import { isUnder } from './pointer.ts';
import { hasLoneSurrogate } from './text.ts';

type Scalar = string | number | boolean | null;

/** About one value of the validated arguments, named by its JSON pointer. */
export type Comparison =
  | { at: string; is: '=' | '<' | '<=' | '>' | '>='; value: Scalar }
  | { at: string; is: 'in'; values: Scalar[] };

/** Exactly the call of this input fingerprint, or every call for which all comparisons hold. */
export type Coverage =
  { kind: 'call'; fingerprint: string } | { kind: 'matching'; when: [Comparison, ...Comparison[]] };

export interface StandingRule {
  id: string;
  tenant: string;
  action: string;
  contractVersion: number;
  covers: Coverage;
  /** Who made it, with the roles they had then. */
  by: Pick<Principal, 'subject' | 'roles'>;
  reason: string | null;
  /** The task whose approval it was made from. */
  taskId: string | null;
  /** Database clock, ms since the epoch. */
  madeAt: number;
  expiresAt: number;
  revoked: { at: number; by: string; reason: string | null } | null;
}

/** Where the rules are kept: those that stand now, by the clock that decides. */
export interface StandingRules {
  standingRules(filter: { tenant: string; action: string; standing: true }): Promise<StandingRule[]>;
}

/** `planned`, or what it becomes under the rules that stand now. Reads them only where policy asks for a person. */
export async function underStandingRules(
  planned: PlannedOperation,
  rules: StandingRules,
): Promise<PlannedOperation> {
  const { approval, principal, action } = planned.plan;
  if (approval == null || approval.challenge !== null) return planned;
  const standing = await rules.standingRules({ tenant: principal.tenant, action, standing: true });
  const used = rulesFor(planned.plan, approval, planned.input, standing);
  if (used === null) return planned;
  const standingRules = used.map(({ id, by }) => ({ id, by: by.subject }));
  return { ...planned, plan: { ...planned.plan, approval: null, standingRules } };
}

/** As many as there must be approvers, one of each person; null when they are too few. */
export function rulesFor(
  plan: Pick<Plan, 'principal' | 'action' | 'contractVersion' | 'fingerprint'>,
  approval: PlanApproval,
  input: JsonObject,
  standing: readonly StandingRule[],
): StandingRule[] | null {
  if (approval.challenge !== null) return null;
  const { principal } = plan;
  const used: StandingRule[] = [];
  for (const rule of standing) {
    const { by } = rule;
    const isOfCall =
      rule.tenant === principal.tenant &&
      rule.action === plan.action &&
      rule.contractVersion === plan.contractVersion;
    const mayDecide =
      (by.subject !== principal.subject || approval.requesterMayDecide) &&
      (approval.roles.length === 0 || approval.roles.some((role) => by.roles.includes(role)));
    const isNew = used.every((other) => other.by.subject !== by.subject);
    if (isOfCall && mayDecide && isNew && isCovered(rule.covers, plan.fingerprint.input, input))
      used.push(rule);
    if (used.length === approval.quorum) return used;
  }
  return null;
}

function isCovered(covers: Coverage, fingerprint: string, input: JsonObject): boolean {
  if (covers.kind === 'call') return covers.fingerprint === fingerprint;
  return covers.when.length > 0 && covers.when.every((comparison) => holds(comparison, input));
}

function holds(comparison: Comparison, input: JsonObject): boolean {
  const actual = valueAt(input, comparison.at);
  if (comparison.is === 'in') return comparison.values.some((value) => value === actual);
  const { is, value } = comparison;
  if (is === '=') return actual === value;
  if (typeof actual !== 'number' || typeof value !== 'number') return false;
  switch (is) {
    case '<':
      return actual < value;
    case '<=':
      return actual <= value;
    case '>':
      return actual > value;
    case '>=':
      return actual >= value;
    default:
      return is satisfies never;
  }
}

/** RFC 6901; undefined where there is nothing. Own keys only. */
function valueAt(input: JsonObject, pointer: string): Json | undefined {
  let value: Json | undefined = input;
  for (const escaped of pointer.split('/').slice(1)) {
    const segment = escaped.replaceAll('~1', '/').replaceAll('~0', '~');
    if (typeof value !== 'object' || value === null) return undefined;
    if (Array.isArray(value)) value = /^(0|[1-9]\d*)$/.test(segment) ? value[Number(segment)] : undefined;
    else value = Object.hasOwn(value, segment) ? value[segment] : undefined;
  }
  return value;
}

/** Throws `invalid_standing_rule` (`details.issues`) for what is no predicate, or one about a field that is never stored (S2.10). */
export function checkCoverage({ name, sensitive }: ActionContract, covers: unknown): Coverage {
  const { kind, fingerprint, when } = fieldsOf(covers);
  if (kind === 'call' && typeof fingerprint === 'string' && /^[0-9a-f]{64}$/.test(fingerprint))
    return { kind, fingerprint };
  if (kind !== 'matching' || !Array.isArray(when))
    throw wrong('covers', 'must be {kind: "call", fingerprint} or {kind: "matching", when: [comparison, …]}');
  const [first, ...others] = when.map((comparison, index) => checkComparison(comparison, `when/${index}`));
  if (first === undefined || when.length > LIMITS.comparisonsMax.value)
    throw wrong('when', `needs 1 to ${LIMITS.comparisonsMax.value} comparisons`);
  const all: [Comparison, ...Comparison[]] = [first, ...others];
  const secret = all.find(({ at }) => sensitive.input.some((pattern) => isUnder(at, pattern)));
  if (secret !== undefined)
    throw wrong(secret.at, `is a sensitive field of ${name}: a rule about it would keep its value`);
  return { kind, when: all };
}

function checkComparison(comparison: unknown, field: string): Comparison {
  const { at, is, value, values, ...more } = fieldsOf(comparison);
  const isPointer = typeof at === 'string' && /^(\/([^~/]|~[01])*)+$/.test(at) && isShort(at);
  if (!isPointer) throw wrong(`${field}/at`, 'must be a JSON pointer such as /amount');
  if (Object.keys(more).length > 0)
    throw wrong(field, 'must be {at, is, value} or {at, is: "in", values} and nothing else');
  if (is === 'in') {
    if (!Array.isArray(values) || value !== undefined)
      throw wrong(`${field}/values`, 'must be a list of values');
    if (values.length < 1 || values.length > LIMITS.comparedValuesMax.value)
      throw wrong(`${field}/values`, `needs 1 to ${LIMITS.comparedValuesMax.value} values`);
    return { at, is, values: values.map((each) => checkScalar(each, `${field}/values`)) };
  }
  if (is === '=' && values === undefined) return { at, is, value: checkScalar(value, `${field}/value`) };
  if (is !== '<' && is !== '<=' && is !== '>' && is !== '>=')
    throw wrong(`${field}/is`, 'must be one of = < <= > >= in');
  if (typeof value !== 'number' || !Number.isFinite(value) || values !== undefined)
    throw wrong(`${field}/value`, 'must be a number');
  return { at, is, value };
}

function checkScalar(value: unknown, field: string): Scalar {
  const isScalar =
    value === null ||
    typeof value === 'boolean' ||
    (typeof value === 'number' && Number.isFinite(value)) ||
    (typeof value === 'string' && isShort(value));
  if (isScalar) return value;
  throw wrong(
    field,
    `must be a number, true, false, null or text of at most ${LIMITS.comparedTextLengthMax.value} characters`,
  );
}

const isShort = (text: string): boolean =>
  text.length <= LIMITS.comparedTextLengthMax.value && !hasLoneSurrogate(text) && !text.includes('\0');

/** How long a rule stands, in ms; 30 days where nothing is said. */
export function checkTerm(expiresIn: unknown): number {
  const term = parseDuration(expiresIn ?? '30d');
  if (term !== null && term >= 1 && term <= LIMITS.standingRuleMsMax.value) return term;
  throw wrong(
    'expiresIn',
    `must be a duration such as 30d, from 1 ms to ${LIMITS.standingRuleMsMax.value} ms; no rule stands for ever`,
  );
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}

function wrong(field: string, message: string): HoldfastError {
  return new HoldfastError('invalid_standing_rule', `${field} ${message}.`, {
    details: { issues: [{ field, message }] },
  });
}
