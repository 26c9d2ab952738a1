/** S2.9, S2.10 and interfaces.md "Sizes": what becomes of a result. None ever undoes the effect it is about. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { applied, mismatch, notApplied, notYet, verified } from '../../src/contract/handlers.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { Handlers, OperationSpec, TestStore } from '../support/operation-rig.ts';

const KIB = 1024;

describe.each(STORES)('a result on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  /** Applies its effect and answers `output`. */
  const returning = (output: unknown, spec: OperationSpec = {}) => {
    const reserved: Promise<Operation> = Operation.reserve(ledger, {
      ...spec,
      definition: { output: z.any(), ...spec.definition },
      handlers: {
        async execute({ amount }, { operationId }) {
          (await reserved).target.apply(operationId, amount);
          return output as never;
        },
        ...spec.handlers,
      },
    });
    return reserved;
  };

  test('[S2.9] is kept whole up to 256 KiB, by reference and hash above', async () => {
    const small = { text: 'x'.repeat(256 * KIB - '{"text":""}'.length) };
    const inline = await returning(small);
    expect(await inline.attempt()).toMatchObject({ kind: 'committed', result: { kind: 'inline' } });
    const large = { text: 'ü'.repeat(200 * KIB) };
    const referred = await returning(large);
    const outcome = await referred.attempt();
    const text = JSON.stringify(large);
    const sha256 = createHash('sha256').update(text).digest('hex');
    const result = { kind: 'reference', sha256, bytes: Buffer.byteLength(text) };
    expect(outcome).toEqual({ kind: 'committed', replayed: false, result });
    expect((await referred.row()).result).toEqual(result);
    expect(await ledger.getPayload('local', sha256)).toBe(text);
    expect([inline.effects, referred.effects]).toEqual([1, 1]);
  });

  test('[S2.9] too large to keep, it is dropped with its hash, and the task completes all the same', async () => {
    const operation = await returning({ text: 'x'.repeat(33 * KIB * KIB) });
    const outcome = await operation.attempt();
    expect(outcome).toMatchObject({
      kind: 'committed',
      result: { kind: 'dropped', bytes: 33 * KIB * KIB + 11 },
    });
    expect(await operation.row()).toMatchObject({
      state: 'committed',
      result: { kind: 'dropped' },
      end: { status: 'completed' },
    });
    expect(operation.effects).toBe(1);
  });

  test('[S2.9] a payload table that can’t take it does not undo the commit', async () => {
    const operation = await returning({ text: 'x'.repeat(300 * KIB) });
    const broken = { ...ledger, putPayload: () => Promise.reject(new Error('disk full')) };
    expect(await operation.attempt({}, { ledger: broken })).toMatchObject({
      kind: 'committed',
      result: { kind: 'dropped' },
    });
    expect(operation.effects).toBe(1);
  });

  test('[S2.9][S1.4] what JSON can’t hold never undoes the effect: kept as near as JSON comes, or dropped', async () => {
    const cycle: Record<string, unknown> = {};
    cycle['self'] = cycle;
    const kept: [unknown, unknown][] = [
      [undefined, null],
      [{ at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }],
      [{ n: 10n ** 20n }, { n: '100000000000000000000' }],
      [
        { n: NaN, m: Infinity },
        { n: 'NaN', m: 'Infinity' },
      ],
      [{ n: 2 ** 60 }, { n: '1152921504606846976' }],
      [{ s: 'a\ud800b' }, { s: 'a\ufffdb' }],
      [
        [undefined, () => 1],
        [null, null],
      ],
      [{ n: -0 }, { n: 0 }],
    ];
    for (const [output, value] of kept) {
      const operation = await returning(output);
      expect(await operation.attempt()).toEqual({
        kind: 'committed',
        replayed: false,
        result: { kind: 'inline', value },
      });
      expect((await operation.row()).result).toEqual({ kind: 'inline', value });
      expect(operation.effects).toBe(1);
    }
    let deep: unknown = 1;
    for (let level = 0; level < 5_000; level += 1) deep = [deep];
    for (const output of [
      cycle,
      deep,
      {
        n: Symbol('x'),
        get bad() {
          throw new Error('no');
        },
      },
    ]) {
      const operation = await returning(output);
      expect(await operation.attempt()).toMatchObject({ kind: 'committed', result: { kind: 'dropped' } });
      expect(operation.effects).toBe(1);
    }
  });

  test('[S2.9] no JSON and not what the contract promises either, it is dropped and the commit stands', async () => {
    const operation = await returning(
      { id: 'x', amount: NaN },
      { definition: { output: z.object({ id: z.string(), amount: z.number() }) } },
    );
    expect(await operation.attempt()).toMatchObject({ kind: 'committed', result: { kind: 'dropped' } });
    expect(operation.effects).toBe(1);
  });

  describe('that does not fit the contract', () => {
    const definition = { output: z.object({ id: z.string(), amount: z.number() }) };

    test('[S2.6] is an applied effect: the target is asked for a better one', async () => {
      const lookup: Handlers['lookup'] = ({ operationId }) =>
        Promise.resolve(applied({ id: operationId, amount: 5 }));
      const operation = await returning(
        { id: 7 },
        { definition, handlers: { lookup, verify: () => Promise.resolve(verified()) } },
      );
      expect(await operation.attempt()).toMatchObject({
        kind: 'committed',
        result: { value: { amount: 5 } },
      });
      expect(operation.effects).toBe(1);
    });

    test('[S3.5] and failing that a person is, with what was returned', async () => {
      for (const lookup of [
        undefined,
        () => Promise.resolve(notApplied()),
        () => Promise.resolve(applied({ wrong: true } as never)),
      ]) {
        const operation = await returning({ id: 7 }, { definition, handlers: lookup ? { lookup } : {} });
        expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
        expect(await operation.row()).toMatchObject({
          state: 'attention',
          result: { kind: 'inline' },
          executions: 1,
        });
        expect(operation.effects).toBe(1);
      }
    });

    test('[S5.1] of a read is simply read again', async () => {
      const operation = await returning({ id: 7 }, { effect: 'safe', definition });
      expect(await operation.attempt()).toMatchObject({ kind: 'released' });
      expect(await operation.row()).toMatchObject({ state: 'released' });
    });

    test('[S2.10] shows nothing of itself where the contract has sensitive fields', async () => {
      const secret = { output: z.object({ id: z.string(), token: sensitive(z.string()) }) };
      const operation = await returning({ id: 7, tokn: 'hunter2' }, { definition: secret });
      const outcome = await operation.attempt();
      expect(outcome).toMatchObject({ kind: 'unknown', attention: true });
      expect(
        JSON.stringify([
          outcome,
          await operation.row(),
          await operation.alerts(),
          await ledger.audit({ taskId: operation.taskId }),
        ]),
      ).not.toMatch(/hunter2/);
    });
  });

  describe('with sensitive fields', () => {
    const definition = { output: z.object({ id: z.string(), token: sensitive(z.string()) }) };
    const output = { id: 'x', token: 'hunter2' };

    test('[S2.10] is whole for the workflow and redacted in row, audit and alert', async () => {
      const operation = await returning(output, { definition });
      expect(await operation.attempt()).toMatchObject({
        kind: 'committed',
        result: { kind: 'inline', value: output },
      });
      expect((await operation.row()).result).toEqual({
        kind: 'inline',
        value: { id: 'x', token: '[redacted]' },
      });
      expect(
        JSON.stringify([await operation.row(), await ledger.audit({ taskId: operation.taskId })]),
      ).not.toMatch(/hunter2/);
      expect(await operation.attempt()).toMatchObject({ result: { value: { token: '[redacted]' } } });
    });

    test('[S2.10] is redacted by reference too', async () => {
      const operation = await returning({ id: 'x'.repeat(300 * KIB), token: 'hunter2' }, { definition });
      const outcome = await operation.attempt();
      if (outcome.kind !== 'committed' || outcome.result.kind !== 'reference') throw new Error(outcome.kind);
      expect(await ledger.getPayload('local', outcome.result.sha256)).toMatch(/"token":"\[redacted\]"/);
    });

    test('[S2.10] is taken out of what a verify says about it', async () => {
      const verify: Handlers['verify'] = (_input, { id, token }: never) =>
        Promise.resolve(mismatch(`${String(id)}: the token is ${String(token)}`));
      const operation = await returning(output, {
        definition: { ...definition, rollback: { kind: 'outOfBand' } },
        handlers: { verify },
      });
      const outcome = await operation.attempt();
      const kept = JSON.stringify([
        outcome,
        await operation.row(),
        await operation.alerts(),
        await ledger.audit({ taskId: operation.taskId }),
      ]);
      expect(kept).not.toMatch(/hunter2/);
      expect(kept).toMatch(/the token is \[redacted\]/);
    });

    test('[S2.6] is verified whole by a later attempt where the target can tell it again', async () => {
      const seen: unknown[] = [];
      const handlers: Handlers = {
        lookup: () => Promise.resolve(applied(output as never)),
        verify: (_input, result) => Promise.resolve(seen.push(result) === 1 ? notYet() : verified()),
      };
      const operation = await returning(output, {
        definition,
        handlers,
        plan: { deadlines: { verifyMs: 0 } },
      });
      await operation.attempt();
      expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({
        kind: 'committed',
        result: { value: output },
      });
      expect(seen).toEqual([output, output]);
      expect(operation.effects).toBe(1);
    });
  });

  test('[S2.6] by reference is what a later attempt verifies', async () => {
    const large = { text: 'x'.repeat(300 * KIB) };
    const seen: unknown[] = [];
    const verify: Handlers['verify'] = (_input, result) =>
      Promise.resolve(seen.push(result) === 1 ? notYet() : verified());
    const operation = await returning(large, { handlers: { verify }, plan: { deadlines: { verifyMs: 0 } } });
    await operation.attempt();
    expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({
      kind: 'committed',
      result: { kind: 'reference' },
    });
    expect(seen).toEqual([large, large]);
  });
});
