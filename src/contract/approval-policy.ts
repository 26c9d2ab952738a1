/**
 * From a contract's policy to the approval one call needs, frozen into its plan (S4, S6.4). Pure.
 *
 * Fails closed: a rule that throws or answers nonsense permits nothing.
 */
import type { Json, JsonObject } from '../task/json.ts';
import type { PlanApproval } from '../task/plan.ts';
import type { ActionContract, ApprovalRule } from './define-action.ts';
import { parseDuration } from './duration.ts';
import { HoldfastError } from './error.ts';
import { LIMITS } from './limits.ts';
import { REDACTED, redact } from './redact.ts';

const EXPIRES_IN_MS_DEFAULT = 86_400_000;
const HOUR_MS = 3_600_000;
const ON_EXPIRY = ['deny', 'halt', 'remind', 'escalate'] as const;
const RULE_KEYS = [
  'roles',
  'quorum',
  'requesterMayDecide',
  'expiresIn',
  'onExpiry',
  'escalateTo',
  'warnBefore',
  'challenge',
  'mayAnswerOverMcp',
];
/** A phrase a person can type: the call's own facts, no more than this many of them. */
const FACTS_MAX = 4;
const FACT_CHARS_MAX = 60;
const CHALLENGE_CHARS_MAX = 400;

/** Who must decide before `input` may be executed; null when nobody. Throws `invalid_contract`. */
export function approvalFor(contract: ActionContract, input: JsonObject): PlanApproval | null {
  const isIrreversible = contract.rollback.kind === 'none' && contract.effect !== 'safe';
  const rule = askRule(contract, input);
  if (rule === null && !isIrreversible) return null;
  return frozen(contract, rule ?? {}, isIrreversible ? challengeOf(contract, input) : null);
}

function askRule(contract: ActionContract, input: JsonObject): ApprovalRule | null {
  if (contract.approval === undefined) return null;
  let answer: unknown;
  try {
    answer = contract.approval(structuredClone(input));
  } catch (cause) {
    throw invalid(contract, 'threw', cause);
  }
  if (!answer) return null;
  if (typeof answer !== 'object' || Array.isArray(answer) || 'then' in answer)
    throw invalid(contract, 'must answer false or an object, at once');
  const unknown = Object.keys(answer).find((key) => !RULE_KEYS.includes(key));
  if (unknown !== undefined) throw invalid(contract, `answers ${unknown}, which is no part of a rule`);
  return answer;
}

function frozen(contract: ActionContract, rule: ApprovalRule, irreversible: string | null): PlanApproval {
  const { quorum = 1, onExpiry = 'deny', requesterMayDecide = false, mayAnswerOverMcp = false } = rule;
  const expiresInMs = rule.expiresIn === undefined ? EXPIRES_IN_MS_DEFAULT : parseDuration(rule.expiresIn);
  const challenge = rule.challenge === undefined ? irreversible : checkChallenge(contract, rule.challenge);
  if (expiresInMs === null || expiresInMs < 1 || expiresInMs > LIMITS.runDeadlineMsMax.value)
    throw invalid(
      contract,
      `has an expiresIn that is no duration of 1 ms to ${LIMITS.runDeadlineMsMax.value} ms`,
    );
  if (!Number.isInteger(quorum) || quorum < 1 || quorum > 10)
    throw invalid(contract, 'has a quorum that is no whole number from 1 to 10');
  if (!ON_EXPIRY.includes(onExpiry))
    throw invalid(contract, `has an onExpiry that is none of ${ON_EXPIRY.join(', ')}`);
  if (onExpiry === 'escalate' && namesOf(contract, rule.escalateTo).length === 0)
    throw invalid(contract, "has onExpiry 'escalate' and names no roles in escalateTo");
  return {
    roles: namesOf(contract, rule.roles),
    quorum,
    requesterMayDecide: requesterMayDecide === true,
    expiresInMs,
    onExpiry,
    warnBeforeMs: warnBeforeOf(contract, rule, expiresInMs),
    escalateTo: namesOf(contract, rule.escalateTo),
    challenge,
    // S4.6: an irreversible action is never decided over the channel that asked for it.
    mayAnswerOverMcp: mayAnswerOverMcp === true && challenge === null,
  };
}

function warnBeforeOf(contract: ActionContract, rule: ApprovalRule, expiresInMs: number): number {
  if (rule.warnBefore === undefined) {
    const isWarned = rule.onExpiry !== 'remind' && expiresInMs >= HOUR_MS;
    return isWarned ? Math.min(HOUR_MS, Math.floor(expiresInMs / 4)) : 0;
  }
  const beforeMs = parseDuration(rule.warnBefore);
  if (beforeMs !== null && beforeMs < expiresInMs) return beforeMs;
  throw invalid(contract, 'has a warnBefore that is no duration shorter than its expiresIn');
}

/** What a person can see and type back the same: one line, without space at its ends. */
function checkChallenge(contract: ActionContract, challenge: unknown): string {
  const phrase = typeof challenge === 'string' ? oneLine(challenge) : '';
  if (phrase !== '' && phrase.length <= CHALLENGE_CHARS_MAX) return phrase;
  throw invalid(contract, `has a challenge that is no phrase of 1 to ${CHALLENGE_CHARS_MAX} characters`);
}

const oneLine = (text: string): string => text.replace(/[\s\p{C}]+/gu, ' ').trim();

function namesOf(contract: ActionContract, names: unknown): string[] {
  if (names === undefined) return [];
  if (Array.isArray(names) && names.every((name) => typeof name === 'string' && name !== ''))
    return [...names];
  throw invalid(contract, 'names roles that are no texts');
}

/** S4.6: the phrase to type back, made from the call's own facts (an amount among them, if any); sensitive ones are left out. */
function challengeOf({ name, sensitive }: ActionContract, input: JsonObject): string {
  const facts = scalarsOf(redact(input, sensitive.input));
  const chosen = facts.slice(0, FACTS_MAX);
  const amount = facts.find((fact) => typeof fact === 'number');
  if (amount !== undefined && !chosen.includes(amount)) chosen.splice(FACTS_MAX - 1, 1, amount);
  return [name, ...chosen.map((fact) => [...oneLine(String(fact))].slice(0, FACT_CHARS_MAX).join(''))]
    .map((text) => text.trim())
    .filter((text) => text !== '')
    .join(' ');
}

function scalarsOf(value: Json): (string | number)[] {
  if (typeof value === 'string') return value === REDACTED ? [] : [value];
  if (typeof value === 'number') return [value];
  if (value === null || typeof value === 'boolean') return [];
  return Object.values(value).flatMap(scalarsOf);
}

function invalid({ name }: ActionContract, problem: string, cause?: unknown): HoldfastError {
  return new HoldfastError(
    'invalid_contract',
    `The approval rule of ${name} ${problem}; nothing was started.`,
    { cause },
  );
}

/**
 * Whether policy asks for more about `after` than the word of an approver of `before` (S4.2). Only a rule that is the
 * same, needs nobody else and no phrase is met by the approver who made the edit.
 */
export function asksForMore(before: PlanApproval | null, after: PlanApproval | null): boolean {
  if (after === null) return false;
  return (
    before === null || after.quorum > 1 || after.challenge !== null || termsOf(before) !== termsOf(after)
  );
}

/** What an approver is bound by; when people are alerted is no part of it, and plans of 0.1 do not have it. */
const termsOf = ({ warnBeforeMs: _alerts, ...terms }: PlanApproval): string => JSON.stringify(terms);
