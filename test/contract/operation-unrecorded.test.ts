/** Field case 16: a read that its contract lets run while the ledger is away. Nothing of the ledger is touched. */
import { describe, expect, test } from 'vitest';
import { ActionFailure, fails, mismatch, notYet, verified } from '../../src/contract/handlers.ts';
import { defineAction } from '../../src/contract/define-action.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import { planOperation } from '../../src/contract/plan-operation.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { performOperation } from '../../src/operation/perform-operation.ts';
import type { AttemptRequest } from '../../src/task/activity-api.ts';
import { z } from 'zod';
import type { Handlers } from '../support/operation-rig.ts';

/** Any use is a failure of the test. */
const away = new Proxy({} as Ledger, {
  get(_target, name) {
    throw new Error(`the ledger is away, and ${String(name)} was called`);
  },
});

function run(
  handlers: Handlers,
  overrides: Partial<AttemptRequest> = {},
  effect: 'safe' | 'conditional' = 'safe',
) {
  const contract = defineAction({
    name: 'read_stock',
    version: 1,
    description: 'Reads.',
    input: z.object({ amount: z.number() }),
    output: z.object({ id: z.string(), amount: z.number() }),
    effect: 'safe',
    ledger: 'optional',
  });
  const execute: Handlers['execute'] = ({ amount }) => Promise.resolve({ id: 'stock', amount });
  const action = implementAction(contract, { execute, ...handlers });
  const principal = { tenant: 'local', subject: 'ann', roles: [] };
  const { plan, input } = planOperation(action, { args: { amount: 5 }, principal });
  const request: AttemptRequest = {
    plan: { ...plan, effect, recorded: false },
    input,
    taskId: 'task',
    ordinal: 1,
    attempt: 1,
    purpose: 'execute',
    inline: false,
    verifyFinal: false,
    journal: [],
    ...overrides,
  };
  const signal = new AbortController().signal;
  return performOperation({ ledger: away, handlers: action.handlers, contract: action.contract }, request, {
    signal,
    heartbeat: () => undefined,
  });
}

describe('a read without the ledger', () => {
  test('[S10.1] answers what it read', async () => {
    expect(await run({})).toEqual({
      kind: 'committed',
      replayed: false,
      result: { kind: 'inline', value: { id: 'stock', amount: 5 } },
    });
    const large = { id: 'x'.repeat(300_000), amount: 5 };
    expect(await run({ execute: () => Promise.resolve(large) })).toMatchObject({
      kind: 'committed',
      result: { kind: 'dropped' },
    });
  });

  test('[S5] fails as any other', async () => {
    const failing = (error: Error) => run({ execute: () => Promise.reject(error) });
    expect(await failing(ActionFailure.notSent('down'))).toMatchObject({ kind: 'released' });
    expect(await failing(ActionFailure.permanent('gone'))).toMatchObject({ kind: 'failed' });
    expect(await failing(new Error('reset'))).toMatchObject({ kind: 'unknown', attention: false });
    expect(await run({ execute: () => Promise.resolve({ id: 7 } as never) })).toMatchObject({
      kind: 'released',
    });
    expect(await run({ precondition: () => Promise.resolve(fails('closed')) })).toEqual({
      kind: 'refused',
      reason: 'closed',
    });
    expect(await run({ precondition: () => Promise.reject(new Error('down')) })).toMatchObject({
      kind: 'released',
    });
  });

  test('[S2.6] is verified, and never waits for a person', async () => {
    expect(await run({ verify: () => Promise.resolve(verified()) })).toMatchObject({ kind: 'committed' });
    expect(await run({ verify: () => Promise.resolve(mismatch('stale')) })).toMatchObject({
      kind: 'failed',
      failure: { code: 'verify_failed' },
    });
    expect(await run({ verify: () => Promise.resolve(notYet('soon')) })).toEqual({
      kind: 'notYet',
      reason: 'soon',
    });
    expect(await run({ verify: () => Promise.resolve(notYet()) }, { verifyFinal: true })).toMatchObject({
      kind: 'failed',
    });
    expect(await run({}, { purpose: 'settle' })).toMatchObject({ kind: 'released' });
  });

  test('[S5.1] is refused for anything but a read', async () => {
    await expect(run({}, {}, 'conditional')).rejects.toThrow('may not run unrecorded');
  });
});
