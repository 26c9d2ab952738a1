/** S2.1 to S2.3, S2.5: from the look to the execution, on real ledgers. The target's own counter is the oracle. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ActionFailure, fails, holds, notApplied, unknown, verified } from '../../src/contract/handlers.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { countingLedger } from '../support/counting-ledger.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { TestStore } from '../support/operation-rig.ts';

describe.each(STORES)('an operation on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  test('[S2.7] is sent once and committed with its result', async () => {
    const operation = await Operation.reserve(ledger, {
      handlers: { verify: () => Promise.resolve(verified()) },
    });
    const outcome = await operation.attempt();
    const value = { id: operation.operationId, amount: 5 };
    expect(outcome).toEqual({ kind: 'committed', replayed: false, result: { kind: 'inline', value } });
    expect(operation.effects).toBe(1);
    const end = {
      status: 'completed',
      effect: 'applied',
      cause: 'committed',
      error: null,
      cancelRequested: false,
    };
    expect(await operation.row()).toMatchObject({ state: 'committed', executions: 1, attempt: 1, end });
  });

  test('[S2.3][S10.2] takes two ledger transactions when all goes well: the claim with its intent, and the commit', async () => {
    const handlers = {
      precondition: () => Promise.resolve(holds()),
      verify: () => Promise.resolve(verified()),
    };
    const operation = await Operation.reserve(ledger, { handlers });
    const { ledger: counted, calls } = countingLedger(ledger);
    await operation.attempt({}, { ledger: counted });
    expect(calls).toEqual(['find', 'claim', 'commit']);
  });

  test('[S2.3] its intent is durable before the handler is called', async () => {
    const seen: unknown[] = [];
    const operation: Operation = await Operation.reserve(ledger, {
      handlers: {
        async execute({ amount }, { operationId }) {
          seen.push((await operation.row()).state);
          return operation.target.apply(operationId, amount);
        },
      },
    });
    await operation.attempt();
    expect(seen).toEqual(['in_flight']);
  });

  test('[S1.3][S2.5] its handler gets the operation id, the attempt, the fence and a signal', async () => {
    const contexts: unknown[] = [];
    const operation = await Operation.reserve(ledger, {
      handlers: {
        async execute(
          _input,
          { operationId, attempt, fence, taskId, principal, signal, assertOwner, heartbeat },
        ) {
          await assertOwner();
          heartbeat();
          contexts.push({ operationId, attempt, fence, taskId, principal, aborted: signal.aborted });
          return { id: 'x', amount: 1 };
        },
      },
    });
    const { operationId, taskId } = operation;
    await operation.attempt({ attempt: 3 });
    const principal = { tenant: 'local', subject: 'ann', roles: ['buyer'] };
    expect(contexts).toEqual([
      { operationId, attempt: 3, fence: '1.3.1', taskId, principal, aborted: false },
    ]);
  });

  test('[S2.2] a precondition that fails refuses it: nothing sent, the end recorded, the key free again', async () => {
    const handlers = { precondition: () => Promise.resolve(fails('the stock is empty')) };
    const operation = await Operation.reserve(ledger, { key: `refused-${ledger.kind}`, handlers });
    expect(await operation.attempt()).toEqual({ kind: 'refused', reason: 'the stock is empty' });
    expect(operation.effects).toBe(0);
    const end = { status: 'failed', effect: 'none', cause: 'precondition_failed' };
    expect(await operation.row()).toMatchObject({ state: 'refused', executions: 0, end });
    expect(await operation.attempt()).toEqual({ kind: 'refused', reason: 'the stock is empty' });
    const again = await Operation.reserve(ledger, {
      key: `refused-${ledger.kind}`,
      target: operation.target,
    });
    expect([again.operationId, again.ordinal]).toEqual([operation.operationId, 2]);
    expect(await again.attempt()).toMatchObject({ kind: 'committed' });
    expect(operation.effects).toBe(1);
  });

  test('[S2.2] the precondition is checked again before every execution', async () => {
    let stock = 1;
    let sends = 0;
    const operation = await Operation.reserve(ledger, {
      handlers: {
        precondition: () => Promise.resolve(stock > 0 ? holds() : fails('the stock is empty')),
        execute() {
          sends += 1;
          throw ActionFailure.notSent('the line is down');
        },
      },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'released' });
    stock = 0;
    expect(await operation.attempt()).toEqual({ kind: 'refused', reason: 'the stock is empty' });
    expect(sends).toBe(1);
  });

  test('[S2.2] a precondition that throws was not checked: nothing is claimed, and it may be tried again', async () => {
    let isDown = true;
    const operation = await Operation.reserve(ledger, {
      handlers: {
        precondition: () => (isDown ? Promise.reject(new Error('no route')) : Promise.resolve(holds())),
      },
    });
    expect(await operation.attempt()).toMatchObject({
      kind: 'released',
      failure: { kind: 'notApplied', message: 'no route' },
    });
    expect(await operation.row()).toMatchObject({ state: 'reserved', executions: 0, generation: 0 });
    isDown = false;
    expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    expect(operation.effects).toBe(1);
  });

  test('[S2.1] a committed operation answers its result, to its own task as its own and to another as replayed', async () => {
    const operation = await Operation.reserve(ledger);
    const first = await operation.attempt();
    expect(await operation.attempt()).toEqual(first);
    expect(await operation.attempt({ taskId: 'another-task' })).toEqual({ ...first, replayed: true });
    expect(await operation.attempt({ purpose: 'settle' })).toEqual(first);
    expect(operation.effects).toBe(1);
  });

  test('[S2.1] other arguments under the same key are a conflict that names paths and no values', async () => {
    const operation = await Operation.reserve(ledger, {
      key: `conflict-${ledger.kind}`,
      input: { amount: 10 },
    });
    await operation.attempt();
    const other = await Operation.reserve(ledger, {
      key: `conflict-${ledger.kind}`,
      input: { amount: 1000 },
    });
    const outcome = await other.attempt();
    expect(outcome).toEqual({ kind: 'conflict', paths: ['/amount'] });
    expect(other.effects).toBe(0);
  });

  test('[S2.1][S2.10] a conflict in sensitive fields alone names the fields', async () => {
    const definition = { input: z.object({ amount: sensitive(z.number()) }) };
    const hashKey = Buffer.alloc(32, 1);
    const spec = { key: `hidden-conflict-${ledger.kind}`, definition, hashKey };
    await Operation.reserve(ledger, { ...spec, input: { amount: 10 } });
    const other = await Operation.reserve(ledger, { ...spec, input: { amount: 1000 } });
    expect(await other.attempt()).toEqual({ kind: 'conflict', paths: ['/amount'] });
  });

  test('[S2.1] an operation that was rolled back, or given up, says so and sends nothing', async () => {
    const rolledBack = await Operation.reserve(ledger, {
      handlers: { rollback: () => Promise.resolve(), verifyRollback: () => Promise.resolve(verified()) },
      plan: { onCancel: 'rollback' },
    });
    await rolledBack.attempt();
    await rolledBack.rollback({ reason: 'cancelled' });
    expect(await rolledBack.attempt()).toMatchObject({
      kind: 'spent',
      end: { effect: 'rolled_back', cause: 'cancelled_after_commit' },
    });
    expect(rolledBack.effects).toBe(1);

    const abandoned = await Operation.reserve(ledger, {
      effect: 'unsafe',
      handlers: { execute: () => Promise.reject(new Error('reset')) },
    });
    await abandoned.attempt();
    const { operationId, taskId, ordinal } = abandoned;
    const end = {
      status: 'failed',
      effect: 'unknown',
      cause: 'abandoned',
      error: null,
      cancelRequested: false,
    } as const;
    await ledger.resolve({
      operationId,
      taskId,
      ordinal,
      attempt: 2,
      resolution: { as: 'abandoned', by: 'bob' },
      end,
      notes: [],
    });
    expect(await abandoned.attempt()).toEqual({ kind: 'spent', end });
  });

  test('[S2.3] an attempt older than the row’s is stale; one of an older run is superseded', async () => {
    const handlers = { execute: () => Promise.reject(ActionFailure.notSent('down')) };
    const operation = await Operation.reserve(ledger, { handlers });
    await operation.attempt({ attempt: 4 });
    expect(await operation.attempt({ attempt: 3 })).toEqual({
      kind: 'fenceStale',
      rowAttempt: 4,
      superseded: false,
    });
    expect(await operation.attempt({ attempt: 9, taskId: 'another-task' })).toMatchObject({
      kind: 'fenceStale',
      superseded: true,
    });
    expect(await operation.attempt({ attempt: 9, ordinal: 0 })).toMatchObject({
      kind: 'fenceStale',
      superseded: true,
    });
  });

  test('[S10.3] the journal’s entries are in the audit whatever the outcome', async () => {
    const note = (n: number) => ({ type: 'cancel_requested', at: n, data: { seq: n } });
    const notesOf = async (operation: Operation) =>
      (await ledger.audit({ taskId: operation.taskId }))
        .filter(({ type }) => type === 'cancel_requested')
        .map(({ data }) => data['seq']);
    const committed = await Operation.reserve(ledger);
    await committed.attempt({ journal: [note(1)] });
    await committed.attempt({ journal: [note(2)] });
    expect(await notesOf(committed)).toEqual([1, 2]);
    const unchecked = await Operation.reserve(ledger, {
      handlers: { precondition: () => Promise.reject(new Error('down')) },
    });
    await unchecked.attempt({ journal: [note(3)] });
    expect(await notesOf(unchecked)).toEqual([3]);
    const refused = await Operation.reserve(ledger, {
      handlers: { precondition: () => Promise.resolve(fails('no')) },
    });
    await refused.attempt({ journal: [note(4)] });
    expect(await notesOf(refused)).toEqual([4]);
  });

  test('[S3.8] stopped before anything was sent it throws the signal’s reason and claims nothing', async () => {
    const operation = await Operation.reserve(ledger);
    const reason = new Error('the worker shuts down');
    await expect(operation.attempt({}, {}, AbortSignal.abort(reason))).rejects.toBe(reason);
    expect(operation.effects).toBe(0);
    expect(await operation.row()).toMatchObject({ state: 'reserved', generation: 0 });
  });

  test('[S1.5] a row that was never reserved is a defect, not a reason to send', async () => {
    const operation = await Operation.reserve(ledger);
    const plan = { ...operation.plan, operationId: 'op_nobody' };
    await expect(operation.attempt({ plan })).rejects.toMatchObject({ code: 'internal_error' });
    expect(operation.target.total).toBe(0);
  });

  test('[S2.2][S2.6] a handler that its plan has and this worker has not is not skipped', async () => {
    const handlers = {
      precondition: () => Promise.resolve(holds()),
      verify: () => Promise.resolve(verified()),
    };
    const operation = await Operation.reserve(ledger, { handlers });
    const { execute } = operation.action.handlers;
    const without = { ...operation.deps, handlers: { execute } };
    expect(await operation.attempt({}, without)).toMatchObject({ kind: 'released' });
    expect(operation.effects).toBe(0);
    const unverified = { ...operation.deps, handlers: { execute, precondition: handlers.precondition } };
    const plan = { ...operation.plan, deadlines: { ...operation.plan.deadlines, verifyMs: 0 } };
    expect(await operation.attempt({ plan }, unverified)).toMatchObject({ kind: 'notYet' });
    expect(await operation.attempt({ plan, purpose: 'settle' })).toMatchObject({ kind: 'committed' });
    expect(operation.effects).toBe(1);
  });

  describe('that fails', () => {
    const failing = (failure: unknown, spec: Parameters<typeof Operation.reserve>[1] = {}) =>
      Operation.reserve(ledger, {
        ...spec,
        handlers: { execute: () => Promise.reject(failure), ...spec.handlers },
      });

    test('[S5] proven unsent, its claim is given back', async () => {
      const refused = Object.assign(new Error('connect ECONNREFUSED'), {
        code: 'ECONNREFUSED',
        syscall: 'connect',
      });
      for (const failure of [ActionFailure.notSent('down'), refused]) {
        const operation = await failing(failure, { effect: 'unsafe' });
        expect(await operation.attempt()).toMatchObject({
          kind: 'released',
          failure: { kind: 'notApplied' },
        });
        expect(await operation.row()).toMatchObject({
          state: 'released',
          end: null,
          failure: { kind: 'notApplied' },
        });
      }
    });

    test('[S5] rate limited by the target itself, it says for how long', async () => {
      const operation = await failing(ActionFailure.rateLimited('slow down', 1_500));
      expect(await operation.attempt()).toMatchObject({
        kind: 'released',
        failure: { kind: 'rateLimited', retryAfterMs: 1_500 },
      });
    });

    test('[S5] refused for good, it is failed, its end recorded and its key spent', async () => {
      const operation = await failing(ActionFailure.permanent('no such account', 'no_account'));
      expect(await operation.attempt()).toMatchObject({ kind: 'failed', failure: { code: 'no_account' } });
      const end = {
        status: 'failed',
        effect: 'none',
        cause: 'permanent_failure',
        error: { code: 'no_account' },
      };
      expect(await operation.row()).toMatchObject({ state: 'failed', end });
      expect(await operation.attempt()).toMatchObject({ kind: 'failed', failure: { code: 'no_account' } });
    });

    test('[S5][S2.4] in a way nobody classified, its outcome is unknown while something can still decide', async () => {
      const lookup = () => Promise.resolve(notApplied());
      const specs: Parameters<typeof Operation.reserve>[1][] = [
        { effect: 'safe' },
        { effect: 'conditional' },
        { effect: 'unsafe', handlers: { lookup } },
        { effect: 'conditional', key: null, handlers: { lookup } },
      ];
      for (const spec of specs) {
        const operation = await failing(new Error('socket hang up'), spec);
        expect(await operation.attempt()).toMatchObject({
          kind: 'unknown',
          attention: false,
          failure: { kind: 'unknown' },
        });
        expect(await operation.row()).toMatchObject({ state: 'in_flight', end: null });
        expect(await operation.alerts()).toEqual([]);
      }
    });

    test('[S5][S3.5] unknown and undecidable, it goes to a person at once', async () => {
      for (const spec of [{ effect: 'unsafe' } as const, { effect: 'conditional', key: null } as const]) {
        const operation = await failing(new Error('socket hang up'), spec);
        expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
        expect(await operation.row()).toMatchObject({
          state: 'attention',
          attentionAbout: 'effect',
          end: null,
        });
        expect(await operation.alerts()).toMatchObject([{ type: 'needs_attention' }]);
        expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
        expect(await operation.alerts()).toHaveLength(1);
      }
    });

    test('[S2.10] its message, reason and details hold no sensitive argument', async () => {
      const definition = { input: z.object({ amount: z.number(), card: sensitive(z.string()) }) };
      const card = '4111 "1111"/é';
      const input = { amount: 5, card } as never;
      const hashKey = Buffer.alloc(32, 1);
      const spec = { definition, input, hashKey };
      const failed = await failing(
        ActionFailure.permanent(`card ${card} declined`, 'declined', { url: encodeURIComponent(card) }),
        spec,
      );
      const thrown = await failing(new Error(`POST ${JSON.stringify(card)}`), { ...spec, effect: 'unsafe' });
      const refused = await failing(null, {
        ...spec,
        handlers: { precondition: () => Promise.resolve(fails(`no account for ${card}`)) },
      });
      for (const operation of [failed, thrown, refused]) {
        const outcome = await operation.attempt();
        const kept = [
          outcome,
          await operation.row(),
          await operation.alerts(),
          await ledger.audit({ taskId: operation.taskId }),
        ];
        expect(JSON.stringify(kept)).not.toMatch(/4111/);
        expect(JSON.stringify(outcome)).toContain('[redacted]');
      }
    });

    test('[S2.4] a lookup that answers nothing it should decides nothing', async () => {
      const operation = await failing(new Error('reset'), {
        effect: 'unsafe',
        handlers: { lookup: () => Promise.resolve({ nonsense: true } as never) },
      });
      await operation.attempt();
      expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
      expect(await operation.attempt({ purpose: 'settle', verifyFinal: true })).toMatchObject({
        kind: 'unknown',
        attention: true,
      });
    });
  });

  test('[S2.9] a handler that changes its input, or a caller its result, changes nothing for others', async () => {
    const seen: number[] = [];
    const meddle = (input: { amount: number }): void => {
      seen.push(input.amount);
      input.amount = -1;
    };
    const operation = await Operation.reserve(ledger, {
      handlers: {
        precondition: (input) => Promise.resolve((meddle(input), holds())),
        execute: (input, { operationId }) => Promise.resolve((meddle(input), { id: operationId, amount: 5 })),
        verify: (input, result) => Promise.resolve((meddle(input), meddle(result), verified())),
      },
    });
    const outcome = await operation.attempt();
    expect(seen).toEqual([5, 5, 5, 5]);
    if (outcome.kind !== 'committed' || outcome.result.kind !== 'inline') throw new Error('not committed');
    (outcome.result.value as { amount: number }).amount = -1;
    expect(await operation.attempt()).toMatchObject({ result: { value: { amount: 5 } } });
  });

  test('[S5.1] whether to send again is the contract’s to say, and its lookup’s, never a hint’s', async () => {
    const operation = await Operation.reserve(ledger, {
      effect: 'unsafe',
      handlers: { lookup: () => Promise.resolve(unknown('?')) },
    });
    await operation.crash('after_effect');
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
    expect(operation.effects).toBe(1);
  });
});
