/** S2.6 and S6.5: the effect is re-read before anything is committed; a 200 is no verification. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { applied, mismatch, notApplied, notYet, unknown, verified } from '../../src/contract/handlers.ts';
import type { VerifyAnswer } from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { countingLedger } from '../support/counting-ledger.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { Handlers, OperationSpec, TestStore } from '../support/operation-rig.ts';

describe.each(STORES)('verification on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  /** Answers in turn, the last one for ever. */
  const answering = (...answers: (VerifyAnswer | Error)[]): Handlers['verify'] => {
    let asked = 0;
    return () => {
      const answer = answers[Math.min(asked, answers.length - 1)];
      asked += 1;
      return answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer as VerifyAnswer);
    };
  };
  const operationWith = (verify: Handlers['verify'], spec: OperationSpec = {}) =>
    Operation.reserve(ledger, { ...spec, handlers: { ...spec.handlers, ...(verify && { verify }) } });
  const POLLED_ONCE = { plan: { deadlines: { verifyMs: 0 } } };

  test('[S2.6] an effect seen at the second look is committed by the same attempt, its result stored before', async () => {
    const operation = await operationWith(answering(notYet('propagating'), verified()));
    const { ledger: counted, calls } = countingLedger(ledger);
    expect(await operation.attempt({}, { ledger: counted })).toMatchObject({ kind: 'committed' });
    expect(calls).toEqual(['find', 'claim', 'storeApplied', 'commit']);
  });

  test('[S2.6] the first `not yet` stores the result; later attempts look and never execute', async () => {
    const operation = await operationWith(
      answering(notYet('propagating'), notYet(), verified()),
      POLLED_ONCE,
    );
    expect(await operation.attempt()).toEqual({ kind: 'notYet', reason: 'propagating' });
    const result = { kind: 'inline', value: { id: operation.operationId, amount: 5 } };
    expect(await operation.row()).toMatchObject({ state: 'applied', result, end: null });
    expect(await operation.attempt({ purpose: 'settle' })).toEqual({ kind: 'notYet' });
    expect(await operation.attempt({ purpose: 'settle' })).toEqual({
      kind: 'committed',
      replayed: false,
      result,
    });
    expect(operation.effects).toBe(1);
    expect(await operation.row()).toMatchObject({ executions: 1 });
  });

  test('[S2.6] a reason cut inside a character, or an answer that can not be read, costs no attempt', async () => {
    const long = await operationWith(answering(notYet(`a${'😀'.repeat(2_000)}`)), POLLED_ONCE);
    const reason = `a${'😀'.repeat(999)}…`;
    expect(await long.attempt()).toEqual({ kind: 'notYet', reason });
    const unreadable = {
      get kind(): 'verified' {
        throw new Error('a trap');
      },
    };
    const trapped = await operationWith(answering(unreadable, verified()), POLLED_ONCE);
    expect(await trapped.attempt()).toEqual({ kind: 'notYet' });
    expect(await trapped.attempt({ purpose: 'settle' })).toMatchObject({ kind: 'committed' });
    expect(trapped.effects).toBe(1);
  });

  test('[S2.6] a verify that throws has not seen the effect yet', async () => {
    const operation = await operationWith(answering(new Error('read timeout'), verified()), POLLED_ONCE);
    expect(await operation.attempt()).toEqual({ kind: 'notYet', reason: 'read timeout' });
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({ kind: 'committed' });
  });

  test('[S2.6] the verify deadline ends in `unknown`, alerted, and not in failure', async () => {
    for (const verify of [answering(notYet('still propagating')), answering(new Error('read timeout'))]) {
      const operation = await operationWith(verify, POLLED_ONCE);
      await operation.attempt();
      expect(await operation.attempt({ purpose: 'settle', verifyFinal: true })).toMatchObject({
        kind: 'unknown',
        attention: true,
      });
      expect(await operation.row()).toMatchObject({
        state: 'attention',
        attentionAbout: 'effect',
        result: { value: { amount: 5 } },
        end: null,
      });
      expect(await operation.alerts()).toMatchObject([{ type: 'needs_attention' }]);
      expect(operation.effects).toBe(1);
    }
  });

  test('[S2.6] without a verify handler it is committed, and the audit says that nobody verified it', async () => {
    const operation = await operationWith(undefined);
    await operation.attempt();
    expect((await ledger.audit({ taskId: operation.taskId })).at(-1)?.data).toMatchObject({
      verified: false,
    });
  });

  describe('of an effect that is not as promised', () => {
    const undoing: Handlers = {
      rollback: () => Promise.resolve(),
      verifyRollback: () => Promise.resolve(verified()),
    };

    test('[S2.6][S6.5] it is to be rolled back, and a person is alerted', async () => {
      const lookups: Handlers['lookup'][] = [
        undefined,
        ({ operationId }) => Promise.resolve(applied({ id: operationId, amount: 5 })),
      ];
      for (const lookup of lookups) {
        const handlers = { ...undoing, ...(lookup && { lookup }) };
        const operation = await operationWith(answering(mismatch('the amount is 4')), { handlers });
        expect(await operation.attempt()).toEqual({ kind: 'mismatch', reason: 'the amount is 4' });
        expect(await operation.row()).toMatchObject({
          state: 'rolling_back',
          end: null,
          failure: { code: 'verify_failed' },
        });
        expect(await operation.alerts()).toMatchObject([
          { type: 'verify_failed', message: expect.stringContaining('the amount is 4') as string },
        ]);
        expect(await operation.attempt({ purpose: 'settle' })).toEqual({
          kind: 'mismatch',
          reason: 'the amount is 4',
        });
        expect(operation.effects).toBe(1);
      }
    });

    test('[S2.6][S6.5] looked up first: what is not there has failed, with nothing applied, and a person is alerted', async () => {
      const handlers = { ...undoing, lookup: () => Promise.resolve(notApplied()) };
      const operation = await operationWith(answering(mismatch('no such order')), { handlers });
      expect(await operation.attempt()).toMatchObject({
        kind: 'failed',
        failure: { code: 'verify_failed', message: 'no such order' },
      });
      expect(await operation.row()).toMatchObject({
        state: 'failed',
        end: { status: 'failed', effect: 'none', cause: 'verify_failed' },
      });
      expect(await operation.alerts()).toMatchObject([
        { type: 'verify_failed', message: expect.stringContaining('no such order') as string },
      ]);
    });

    test('[S2.6] where the lookup can’t tell, a person must', async () => {
      for (const lookup of [() => Promise.resolve(unknown()), () => Promise.reject(new Error('down'))]) {
        const operation = await operationWith(answering(mismatch('odd')), {
          handlers: { ...undoing, lookup },
        });
        expect(await operation.attempt()).toMatchObject({
          kind: 'unknown',
          attention: true,
          failure: { code: 'verify_failed' },
        });
        expect(await operation.alerts()).toMatchObject([{ type: 'verify_failed' }]);
      }
    });

    test('[S6.1] what Holdfast has no way to undo goes to a person at once', async () => {
      for (const rollback of [{ kind: 'outOfBand' }, { kind: 'none', reason: 'sent is sent' }] as const) {
        const operation = await operationWith(answering(mismatch('odd')), { definition: { rollback } });
        expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
        expect(await operation.row()).toMatchObject({ state: 'attention', result: { value: { amount: 5 } } });
        expect(await operation.alerts()).toMatchObject([{ type: 'verify_failed' }]);
      }
    });

    test('[S2.6][S6.5] a read that does not verify has failed: there is nothing to undo, and a person is alerted', async () => {
      const operation = await operationWith(answering(mismatch('stale replica')), { effect: 'safe' });
      expect(await operation.attempt()).toMatchObject({ kind: 'failed', failure: { code: 'verify_failed' } });
      expect(await operation.row()).toMatchObject({ end: { effect: 'none', cause: 'verify_failed' } });
      expect(await operation.alerts()).toMatchObject([{ type: 'verify_failed' }]);
    });

    test('[S2.6] it may show only after a while', async () => {
      const operation = await operationWith(answering(notYet(), mismatch('the amount is 4')), {
        ...POLLED_ONCE,
        handlers: undoing,
      });
      expect(await operation.attempt()).toEqual({ kind: 'notYet' });
      expect(await operation.attempt({ purpose: 'settle' })).toEqual({
        kind: 'mismatch',
        reason: 'the amount is 4',
      });
      expect(operation.effects).toBe(1);
    });
  });

  test('[S7.4] the end stays open where a cancel may still undo the effect, and is recorded else', async () => {
    const keep = await operationWith(answering(verified()));
    await keep.attempt();
    expect((await keep.row()).end).toMatchObject({ status: 'completed', effect: 'applied' });
    const undo = await operationWith(answering(verified()), { plan: { onCancel: 'rollback' } });
    await undo.attempt();
    expect(await undo.row()).toMatchObject({ state: 'committed', end: null });
    const read = await operationWith(answering(verified()), { effect: 'safe' });
    await read.attempt();
    expect((await read.row()).end).toMatchObject({ status: 'completed', effect: 'none' });
  });

  test('[S3.8] stopped while it waits to see its effect, it leaves it applied', async () => {
    const stop = new AbortController();
    const operation = await operationWith(() => {
      stop.abort();
      return Promise.resolve(notYet());
    });
    expect(await operation.attempt({}, {}, stop.signal)).toEqual({ kind: 'notYet' });
    expect(await operation.row()).toMatchObject({ state: 'applied' });
  });
});
