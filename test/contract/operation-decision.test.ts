/** S3.7: how often a decision is asked for, on real ledgers. The target's own counter says how often it was. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ActionFailure } from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { PlanDecision } from '../../src/task/plan.ts';
import { Operation, STORES, honestLookup } from '../support/operation-rig.ts';
import type { OperationSpec, TestStore } from '../support/operation-rig.ts';
import { Target } from '../support/operation-target.ts';

const HOUR_MS = 3_600_000;

describe.each(STORES)('a decision on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  /** A model that counts each question: asking changes nothing, and costs. */
  const decision = (budget: Partial<PlanDecision>, spec: OperationSpec = {}): Promise<Operation> =>
    Operation.reserve(ledger, {
      effect: 'safe',
      target: new Target(false),
      plan: { decision: { asksMax: 6, intervalMs: 0, ...budget } },
      ...spec,
    });
  const spent = { kind: 'refused', cause: 'decision_budget_spent' };

  test('[S3.7] is asked again when its answer was lost before the record, and never after it', async () => {
    const model = await decision({});
    await model.crash('after_intent');
    await model.crash('after_effect');
    await model.crash('after_commit');
    const asked = model.effects;
    expect(await model.attempt()).toMatchObject({ kind: 'committed', replayed: false });
    expect([asked, model.effects]).toEqual([2, 2]);
  });

  test('[S3.7] retry: is asked as often as its budget allows, then refused for good with an end on record', async () => {
    const model = await decision({ asksMax: 2 });
    await model.crash('after_effect');
    await model.crash('after_effect');
    const outcome = await model.attempt();
    expect(outcome).toMatchObject({ ...spent, reason: expect.stringContaining('2') as string });
    expect(model.effects).toBe(2);
    const end = { status: 'failed', effect: 'none', cause: 'decision_budget_spent' };
    expect(await model.row()).toMatchObject({ state: 'refused', executions: 2, end });
    // Whoever asks again is told the same.
    expect(await model.attempt()).toEqual(outcome);
    expect(model.effects).toBe(2);
  });

  test('[S3.7] retry: an ask whose answer is no use counts like one that was lost', async () => {
    let asks = 0;
    const fails = () => {
      asks += 1;
      return Promise.reject(new ActionFailure({ kind: 'notApplied', code: 'overloaded', message: 'later' }));
    };
    const model = await decision({ asksMax: 1 }, { handlers: { execute: fails } });
    expect(await model.attempt()).toMatchObject({ kind: 'released' });
    expect(await model.attempt()).toMatchObject(spent);
    expect(asks).toBe(1);
  });

  test('[S3.7] retry: is not asked again before its interval has passed, and loses nothing by that', async () => {
    const model = await decision({ intervalMs: HOUR_MS });
    await model.crash('after_effect');
    const outcome = await model.attempt();
    expect(outcome).toMatchObject({ kind: 'busy', reason: 'paced' });
    if (outcome.kind !== 'busy') throw new Error('it was not paced');
    expect(outcome.retryAfterMs).toBeGreaterThan(HOUR_MS - 60_000);
    expect(outcome.retryAfterMs).toBeLessThanOrEqual(HOUR_MS);
    expect(model.effects).toBe(1);
    const { plan } = model;
    const later = { plan: { ...plan, decision: { asksMax: 6, intervalMs: 0 } } };
    expect(await model.attempt(later)).toMatchObject({ kind: 'committed' });
    expect(model.effects).toBe(2);
  });

  test('[S3.7] is not asked at all where one ask costs more than may be spent', async () => {
    const model = await decision({ asksMax: 0 });
    expect(await model.attempt()).toMatchObject(spent);
    expect([model.effects, (await model.row()).executions]).toEqual([0, 0]);
  });

  test('[S3.7] with its budget spent an answer that the target can still show is taken', async () => {
    const target = new Target(true);
    const model = await decision(
      { asksMax: 1 },
      { effect: 'conditional', target, handlers: { lookup: honestLookup(target) }, lookup: 'conclusive' },
    );
    await model.crash('after_effect');
    expect(await model.attempt()).toMatchObject({ kind: 'committed' });
    expect(model.effects).toBe(1);
  });

  test('[S3.7] one that may have been taken and can not be looked up goes to a person when its budget is spent', async () => {
    const model = await decision({ asksMax: 1 }, { effect: 'conditional', target: new Target(true) });
    await model.crash('after_effect');
    expect(await model.attempt()).toMatchObject({ kind: 'unknown', attention: true });
    expect(await model.alerts()).toMatchObject([{ type: 'needs_attention' }]);
  });
});
