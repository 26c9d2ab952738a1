// S4.5: standing rules as the ledger keeps them, on every store.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/contract/limits.ts';
import type { Coverage } from '../../src/contract/standing-rule.ts';
import type { NewStandingRule } from '../../src/ledger/ledger.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

const COVERS: Coverage = {
  kind: 'matching',
  when: [{ at: '/to', is: 'in', values: ['ä😀', 1.5, null, true] }],
};
let drawn = 0;
const newRule = (overrides: Partial<NewStandingRule> = {}): NewStandingRule => ({
  id: `rule_${process.pid}_${(drawn += 1)}`,
  ...{ tenant: 'acme', action: 'pay', contractVersion: 3, covers: COVERS },
  ...{ by: { subject: 'bob', roles: ['chief'] }, reason: 'every month', taskId: 'task_1' },
  termMs: 60_000,
  ...overrides,
});

describe.each(fixture.STORES)('standing rules on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());
  const standing = async (action: string, tenant = 'acme') =>
    (await place.ledger.standingRules({ tenant, action, standing: true })).map(({ id }) => id);

  test('[S4.5] one is kept as it was made, once, for its tenant and action alone', async () => {
    const { ledger } = place;
    const rule = newRule({ action: 'kept' });
    const made = await ledger.makeStandingRule(rule);
    const { termMs, ...stated } = rule;
    expect(made).toEqual({ ...stated, madeAt: made.madeAt, expiresAt: made.madeAt + termMs, revoked: null });
    expect(await ledger.makeStandingRule(rule)).toEqual(made);
    expect(await ledger.standingRules({ tenant: 'acme', action: 'kept' })).toEqual([made]);
    expect(await standing('kept', 'globex')).toEqual([]);
    expect(await standing('other')).toEqual([]);
  });

  test('[S4.5][S10.4] its making and its revocation are audited in a chain that verifies', async () => {
    const { ledger } = place;
    const { id } = await ledger.makeStandingRule(newRule({ action: 'audited' }));
    const revoke = { id, tenant: 'acme', by: 'cat', reason: 'too wide' };
    const revoked = await ledger.revokeStandingRule(revoke);
    expect(revoked?.revoked).toMatchObject({ by: 'cat', reason: 'too wide' });
    expect(await ledger.revokeStandingRule({ ...revoke, by: 'dan' })).toEqual(revoked);
    const entries = await ledger.audit({ taskId: id });
    expect(entries.map(({ type, tenant }) => [type, tenant])).toEqual([
      ['standing_rule_made', 'acme'],
      ['standing_rule_revoked', 'acme'],
    ]);
    expect(entries.map(({ data }) => data)).toMatchObject([
      {
        by: 'bob',
        roles: ['chief'],
        action: 'audited',
        covers: COVERS,
        taskId: 'task_1',
        reason: 'every month',
      },
      { by: 'cat', reason: 'too wide' },
    ]);
    expect(await ledger.verifyAudit({ taskId: id })).toMatchObject({ ok: true, entries: 2 });
  });

  test('[S4.5] one that is revoked or expired stands no more', async () => {
    const { ledger } = place;
    const { id } = await ledger.makeStandingRule(newRule({ action: 'gone' }));
    await ledger.makeStandingRule(newRule({ action: 'gone', termMs: 1 }));
    await place.pass(2);
    expect(await standing('gone')).toEqual([id]);
    await ledger.revokeStandingRule({ id, tenant: 'acme', by: 'cat', reason: null });
    expect(await standing('gone')).toEqual([]);
    expect(await ledger.standingRules({ tenant: 'acme', action: 'gone' })).toHaveLength(2);
  });

  test('[S4.5][M2.6] another tenant’s can not be revoked, no more than an unknown one', async () => {
    const { ledger } = place;
    const { id } = await ledger.makeStandingRule(newRule({ action: 'foreign' }));
    for (const named of [
      { id, tenant: 'globex' },
      { id: 'rule_unknown', tenant: 'acme' },
    ])
      expect(await ledger.revokeStandingRule({ ...named, by: 'eve', reason: null })).toBeNull();
    expect(await standing('foreign')).toEqual([id]);
  });

  test('[S4.5] no more stand at one time than are judged with each call', async () => {
    const { ledger } = place;
    const many = LIMITS.standingRulesMax.value;
    const made = await Promise.all(
      Array.from({ length: many }, () => ledger.makeStandingRule(newRule({ action: 'many' }))),
    );
    await expect(ledger.makeStandingRule(newRule({ action: 'many' }))).rejects.toMatchObject({
      code: 'invalid_standing_rule',
    });
    await ledger.revokeStandingRule({ id: made[0]?.id ?? '', tenant: 'acme', by: 'bob', reason: null });
    await ledger.makeStandingRule(newRule({ action: 'many' }));
    expect(await standing('many')).toHaveLength(many);
  });
});
