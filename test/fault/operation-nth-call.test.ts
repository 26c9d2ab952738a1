/**
 * The n-th ledger call of an operation fails, for every n, before or after it took effect. Whatever fails: the effect
 * takes place at most once, and the row never says otherwise than it is.
 */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ActionFailure, fails, holds, mismatch, notYet, verified } from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { OperationOutcome, RollbackOutcome } from '../../src/task/outcome.ts';
import { failingLedger } from '../support/failing-ledger.ts';
import type { FailingLedger, Loss } from '../support/failing-ledger.ts';
import { Operation, STORES, honestLookup } from '../support/operation-rig.ts';
import type { Handlers, OperationSpec, TestStore } from '../support/operation-rig.ts';
import { Target } from '../support/operation-target.ts';

const ATTEMPTS_MAX = 12;

/** As the workflow does: attempt until it is decided; an attempt that is lost is followed by the next. */
async function drive(operation: Operation, ledger: Ledger): Promise<OperationOutcome> {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
    const outcome = await operation.attempt({}, { ledger }).catch(() => null);
    if (outcome === null) continue;
    if (outcome.kind === 'fenceStale') operation.attempts = Math.max(operation.attempts, outcome.rowAttempt);
    if (['committed', 'refused', 'failed', 'mismatch'].includes(outcome.kind)) return outcome;
    if (outcome.kind === 'unknown' && outcome.attention) return outcome;
  }
  throw new Error('it was never decided');
}

async function driveRollback(operation: Operation, ledger: Ledger): Promise<RollbackOutcome> {
  for (let attempts = 0; attempts < ATTEMPTS_MAX; attempts += 1) {
    const outcome = await operation.rollback({}, { ledger }).catch(() => null);
    if (outcome?.kind === 'rolledBack' || outcome?.kind === 'attention') return outcome;
  }
  throw new Error('it was never undone');
}

interface Scenario {
  name: string;
  spec: () => OperationSpec;
  /** What it must come to; `attention` where losing an answer may leave only a person to ask. */
  ends: string[];
}

const scenarios: Scenario[] = [
  { name: 'conditional, no lookup', ends: ['committed'], spec: () => ({ effect: 'conditional' }) },
  {
    name: 'conditional, checked, looked up, verified at the second look',
    ends: ['committed'],
    spec: () => {
      const target = new Target(true);
      let looks = 0;
      const verify = () => Promise.resolve((looks += 1) === 1 ? notYet() : verified());
      return {
        effect: 'conditional',
        target,
        handlers: { precondition: () => Promise.resolve(holds()), lookup: honestLookup(target), verify },
      };
    },
  },
  {
    name: 'unsafe, conclusive lookup',
    ends: ['committed'],
    spec: () => {
      const target = new Target(false);
      const plan = { deadlines: { attemptMs: 1, settleMs: 0 } };
      return {
        effect: 'unsafe',
        target,
        lookup: 'conclusive',
        handlers: { lookup: honestLookup(target) },
        plan,
      };
    },
  },
  {
    name: 'unsafe, plain lookup',
    ends: ['committed', 'unknown'],
    spec: () => {
      const target = new Target(false);
      return { effect: 'unsafe', target, handlers: { lookup: honestLookup(target) } };
    },
  },
  { name: 'unsafe, no lookup', ends: ['committed', 'unknown'], spec: () => ({ effect: 'unsafe' }) },
  {
    name: 'refused',
    ends: ['refused'],
    spec: () => ({ handlers: { precondition: () => Promise.resolve(fails('no')) } }),
  },
  {
    name: 'failing for good',
    // An intent whose outcome was lost may have been taken: then the refusal proves nothing (S5).
    ends: ['failed', 'unknown'],
    spec: () => ({ handlers: { execute: () => Promise.reject(ActionFailure.permanent('no such account')) } }),
  },
  {
    name: 'with a large result',
    ends: ['committed'],
    spec: () => {
      const target = new Target(true);
      const execute: Handlers['execute'] = ({ amount }, { operationId }) =>
        Promise.resolve({ ...target.apply(operationId, amount), text: 'x'.repeat(300_000) });
      return { target, definition: { output: z.any() }, handlers: { execute } };
    },
  },
];

describe.each(STORES)('when the ledger on $kind fails at its n-th call,', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
    await ledger.transaction((_transitions, tx) =>
      sql`create table effect (operation_id text not null)`.execute(tx as Kysely<unknown>),
    );
  });
  afterAll(() => store.close());

  /** Runs `each` for the 1st call failing, then the 2nd, … until none is left to fail. */
  async function forEveryCall(
    loss: Loss,
    each: (failing: (n: number) => FailingLedger, n: number) => Promise<FailingLedger>,
  ): Promise<number> {
    for (let n = 1; ; n += 1) {
      const { calls } = await each((at) => failingLedger(ledger, loss, at), n);
      if (calls.length < n) return n;
      if (n > 60) throw new Error('it never ends');
    }
  }

  const cases = scenarios.flatMap((scenario) =>
    (['before', 'after'] as const).map((loss) => ({ ...scenario, loss })),
  );

  test.each(cases)(
    '[S2.11] $loss it took effect: $name has at most one effect and a row that is true',
    async ({ spec, ends, loss }) => {
      const rounds = await forEveryCall(loss, async (failing, n) => {
        const operation = await Operation.reserve(ledger, spec());
        const failed = failing(n);
        const outcome = await drive(operation, failed.ledger);
        expect([n, ends.includes(outcome.kind)]).toEqual([n, true]);
        await expectTrue(operation);
        return failed;
      });
      expect(rounds).toBeGreaterThan(2);
    },
  );

  async function expectTrue(operation: Operation): Promise<void> {
    const row = await operation.row();
    const { effects } = operation;
    expect(effects).toBeLessThanOrEqual(1);
    if (row.state === 'committed') expect(effects).toBe(1);
    if (['refused', 'failed', 'released', 'reserved'].includes(row.state)) expect(effects).toBe(0);
    if (row.end?.effect === 'none') expect(effects).toBe(0);
    expect(await ledger.verifyAudit({ taskId: operation.taskId })).toMatchObject({ ok: true });
  }

  test.each(['before', 'after'] as const)(
    '[S6.2] %s it took effect: a rollback undoes once and says so',
    async (loss) => {
      await forEveryCall(loss, async (failing, n) => {
        const target = new Target(true);
        const operation = await Operation.reserve(ledger, {
          target,
          lookup: 'conclusive',
          handlers: {
            verify: () => Promise.resolve(mismatch('odd')),
            lookup: honestLookup(target),
            rollback: (_input, _result, { originalOperationId }) =>
              Promise.resolve(target.undo(originalOperationId)),
          },
        });
        expect(await operation.attempt()).toMatchObject({ kind: 'mismatch' });
        const failed = failing(n);
        expect(await driveRollback(operation, failed.ledger)).toEqual({ kind: 'rolledBack' });
        expect([target.total, target.undone.get(operation.operationId)]).toEqual([1, 1]);
        expect(await operation.row()).toMatchObject({ state: 'rolled_back', end: { effect: 'rolled_back' } });
        return failed;
      });
    },
  );

  test.each(['before', 'after'] as const)(
    '[S2.8] %s it took effect: a transactional action commits once or not at all',
    async (loss) => {
      await forEveryCall(loss, async (failing, n) => {
        const operation = await Operation.reserve(ledger, {
          definition: { transactional: true, deadlines: { attempt: '1s', verify: '1s' } },
          handlers: {
            async execute({ amount }, { operationId, tx }) {
              await sql`insert into effect (operation_id) values (${operationId})`.execute(
                tx as Kysely<unknown>,
              );
              return { id: operationId, amount };
            },
          },
        });
        const failed = failing(n);
        expect(await drive(operation, failed.ledger)).toMatchObject({ kind: 'committed' });
        const count = await ledger.transaction(async (_transitions, tx) => {
          const { rows } =
            await sql`select 1 from effect where operation_id = ${operation.operationId}`.execute(
              tx as Kysely<unknown>,
            );
          return rows.length;
        });
        expect([n, count]).toEqual([n, 1]);
        return failed;
      });
    },
  );

  test('[S2.7] away for longer than an attempt can wait, the effect is found again by the next one', async () => {
    await Promise.all(
      [3, 4].map(async (first) => {
        const target = new Target(false);
        const operation = await Operation.reserve(ledger, {
          target,
          handlers: { lookup: honestLookup(target), verify: () => Promise.resolve(verified()) },
        });
        const failed = failingLedger(ledger, 'before', first, 5);
        expect(await drive(operation, failed.ledger)).toMatchObject({ kind: 'committed' });
        expect(target.total).toBe(1);
      }),
    );
  });
});
