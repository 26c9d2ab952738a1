/**
 * S4.5: what people allowed in advance. A rule never changes but by being revoked; its making and its revocation are
 * audited in a chain of its own, named by its id, each use in the chain of the task that rode on it.
 */
import type { Kysely } from 'kysely';
import { HoldfastError } from '../contract/error.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Coverage, StandingRule } from '../contract/standing-rule.ts';
import type { JsonObject } from '../task/json.ts';
import type { Ledger, NewStandingRule } from './ledger.ts';
import { stored } from './row.ts';
import type { Schema, StandingRuleTable } from './schema.ts';
import type { Unit } from './unit.ts';

const LISTED_MAX = 1_000;

export async function makeStandingRule(unit: Unit, rule: NewStandingRule): Promise<StandingRule> {
  const { kysely } = unit.tx;
  const now = await unit.tx.now();
  const { tenant, action } = rule;
  const standing = await standingRules(kysely, { tenant, action, standing: true }, now);
  const known = await find(kysely, rule.id);
  if (known) return ruleOf(known);
  if (standing.length >= LIMITS.standingRulesMax.value)
    throw new HoldfastError(
      'invalid_standing_rule',
      `${LIMITS.standingRulesMax.value} standing rules of ${action} stand already: revoke some first.`,
      { details: { issues: [{ field: 'action', message: 'too many rules stand' }] } },
    );
  const record = recordOf(rule, now);
  await kysely.insertInto('standing_rule').values(record).execute();
  const made = ruleOf(record);
  unit.note(chainOf(record), 'standing_rule_made', told(made));
  return made;
}

export async function revokeStandingRule(
  unit: Unit,
  { id, tenant, by, reason }: Parameters<Ledger['revokeStandingRule']>[0],
): Promise<StandingRule | null> {
  const { kysely } = unit.tx;
  const now = await unit.tx.now();
  const revoked = await kysely
    .updateTable('standing_rule')
    .set({ revoked_at: now, revoked_by: by, revoke_reason: reason })
    .where('id', '=', id)
    .where('tenant', '=', tenant)
    .where('revoked_at', 'is', null)
    .returningAll()
    .executeTakeFirst();
  if (revoked) {
    unit.note(chainOf(revoked), 'standing_rule_revoked', { by, action: revoked.action, reason });
    return ruleOf(revoked);
  }
  const known = await find(kysely, id);
  return known?.tenant === tenant ? ruleOf(known) : null;
}

export async function standingRules(
  db: Kysely<Schema>,
  filter: Parameters<Ledger['standingRules']>[0],
  now: number,
): Promise<StandingRule[]> {
  let query = db.selectFrom('standing_rule').selectAll().where('tenant', '=', filter.tenant);
  if (filter.action !== undefined) query = query.where('action', '=', filter.action);
  if (filter.standing === true) query = query.where('revoked_at', 'is', null).where('expires_at', '>', now);
  const limit = Math.min(Math.max(Math.trunc(filter.limit ?? LISTED_MAX), 1), LISTED_MAX);
  const records = await query.orderBy('made_at').orderBy('id').limit(limit).execute();
  return records.map(ruleOf);
}

const find = (db: Kysely<Schema>, id: string): Promise<StandingRuleTable | undefined> =>
  db.selectFrom('standing_rule').selectAll().where('id', '=', id).executeTakeFirst();

const chainOf = ({ id, tenant }: StandingRuleTable) => ({ task_id: id, operation_id: id, tenant });

/** Who allowed what, until when, from which approval (S10.4). */
function told({ action, contractVersion, covers, by, reason, taskId, expiresAt }: StandingRule): JsonObject {
  return {
    ...{ action, contractVersion, by: by.subject, roles: [...by.roles], reason, taskId },
    covers: { ...covers },
    expiresAt: new Date(expiresAt).toISOString(),
  };
}

function recordOf(rule: NewStandingRule, now: number): StandingRuleTable {
  return {
    id: rule.id,
    tenant: rule.tenant,
    action: rule.action,
    contract_version: rule.contractVersion,
    covers: stored(rule.covers) ?? 'null',
    made_by: rule.by.subject,
    roles: stored(rule.by.roles) ?? '[]',
    reason: rule.reason,
    task_id: rule.taskId,
    made_at: now,
    expires_at: now + rule.termMs,
    revoked_at: null,
    revoked_by: null,
    revoke_reason: null,
  };
}

function ruleOf(record: StandingRuleTable): StandingRule {
  const { revoked_at: at, revoked_by: by } = record;
  return {
    id: record.id,
    tenant: record.tenant,
    action: record.action,
    contractVersion: record.contract_version,
    covers: JSON.parse(record.covers) as Coverage,
    by: { subject: record.made_by, roles: JSON.parse(record.roles) as string[] },
    reason: record.reason,
    taskId: record.task_id,
    madeAt: record.made_at,
    expiresAt: record.expires_at,
    revoked: at === null || by === null ? null : { at, by, reason: record.revoke_reason },
  };
}
