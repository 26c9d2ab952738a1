/** Standing rules as people make, read and revoke them (S4.5). What one covers is the contract's part, and pure. */
import { randomBytes } from 'node:crypto';
import type { Duration } from '../contract/duration.ts';
import { actionNamed } from '../contract/action-named.ts';
import { HoldfastError } from '../contract/error.ts';
import { base32 } from '../contract/ids.ts';
import { LIMITS } from '../contract/limits.ts';
import { checkCoverage, checkTerm } from '../contract/standing-rule.ts';
import type { Coverage, StandingRule } from '../contract/standing-rule.ts';
import { hasLoneSurrogate } from '../contract/text.ts';
import type { NewStandingRule } from '../ledger/ledger.ts';
import type { Principal } from '../task/plan.ts';
import type { ClientDeps } from './client-deps.ts';

export interface RuleInput {
  action: string;
  covers: Coverage;
  /** How long it stands, at most 365 d. Default 30 d. */
  expiresIn?: Duration;
  /** Kept in the audit. At most 255 characters. */
  reason?: string;
  /** The task whose approval it is made from. */
  taskId?: string;
}

type CheckedRule = Omit<NewStandingRule, 'id' | 'tenant' | 'by'>;

const ID_BYTES = 16;

export class StandingRulebook {
  readonly #deps: ClientDeps;

  constructor(deps: ClientDeps) {
    this.#deps = deps;
  }

  async allow({ tenant, subject, roles }: Principal, input: RuleInput): Promise<StandingRule> {
    return this.#deps.ledger.makeStandingRule({
      id: `rule_${base32(randomBytes(ID_BYTES))}`,
      tenant,
      by: { subject, roles: [...roles] },
      ...this.check(input),
    });
  }

  /** Throws `unknown_action` and `invalid_standing_rule`. */
  check({ action, covers, expiresIn, reason, taskId }: RuleInput): CheckedRule {
    const { contract } = actionNamed(this.#deps.actions, action);
    return {
      action,
      contractVersion: contract.version,
      covers: checkCoverage(contract, covers),
      reason: checkText('reason', reason),
      taskId: checkText('taskId', taskId),
      termMs: checkTerm(expiresIn),
    };
  }

  async revoke(id: string, { tenant, subject }: Principal, reason?: string): Promise<StandingRule> {
    const revoked = await this.#deps.ledger.revokeStandingRule({
      ...{ id, tenant, by: subject },
      reason: checkText('reason', reason),
    });
    if (revoked !== null) return revoked;
    throw new HoldfastError(
      'standing_rule_not_found',
      'There is no standing rule of that id that you may see.',
    );
  }

  list(
    { tenant }: Principal,
    { action, all = false }: { action?: string; all?: boolean } = {},
  ): Promise<StandingRule[]> {
    return this.#deps.ledger.standingRules({
      tenant,
      ...(action !== undefined && { action }),
      ...(!all && { standing: true }),
    });
  }
}

function checkText(field: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  if (
    text !== '' &&
    text.length <= LIMITS.comparedTextLengthMax.value &&
    !hasLoneSurrogate(text) &&
    !text.includes('\0')
  )
    return text;
  const message = `must be text of 1 to ${LIMITS.comparedTextLengthMax.value} characters`;
  throw new HoldfastError('invalid_standing_rule', `${field} ${message}.`, {
    details: { issues: [{ field, message }] },
  });
}
