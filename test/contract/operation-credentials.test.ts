/** S2.10: what a handler throws or says may quote a credential; it is kept nowhere. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ActionFailure, fails, mismatch, notApplied } from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { Operation, STORES } from '../support/operation-rig.ts';
import type { Handlers, TestStore } from '../support/operation-rig.ts';

const CANARY = 'canary-7f3a9';
const TOLD = `GET https://app:${CANARY}@api.test/x?access_token=${CANARY} with Authorization: Bearer ${CANARY}`;
const thrown = (error: Error): Handlers => ({ execute: () => Promise.reject(error) });

describe.each(STORES)('a credential in a handler’s words, on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  const CASES: [string, Handlers][] = [
    ['an exception', thrown(new Error('fetch failed', { cause: new Error(TOLD) }))],
    ['a refusal for good', thrown(ActionFailure.permanent(TOLD))],
    ['a precondition', { precondition: () => Promise.resolve(fails(TOLD)) }],
    [
      'a failed verification',
      { verify: () => Promise.resolve(mismatch(TOLD)), lookup: () => Promise.resolve(notApplied()) },
    ],
    ['a failed rollback', { rollback: () => Promise.reject(new Error(TOLD)) }],
  ];

  test.each(CASES)('[S2.10] of %s is in no row, alert, audit, log or history', async (_name, handlers) => {
    const logged: unknown[] = [];
    const log = { warn: (...told: unknown[]) => void logged.push(told) };
    const undoes = handlers.rollback !== undefined;
    const verifyRollback: Handlers = undoes
      ? { verifyRollback: () => Promise.resolve({ kind: 'verified' }) }
      : {};
    const operation = await Operation.reserve(ledger, {
      effect: undoes ? 'conditional' : 'unsafe',
      handlers: { ...handlers, ...verifyRollback },
      ...(undoes && { plan: { onCancel: 'rollback' as const } }),
    });
    const answered: unknown[] = [await operation.attempt({}, { log })];
    if (undoes) answered.push(await operation.rollback({ final: true }, { log }));
    const { taskId, operationId } = operation;
    const kept = JSON.stringify({
      answered,
      row: await operation.row(),
      attempts: await ledger.attempts(operationId),
      alerts: await operation.alerts(),
      audit: await ledger.audit({ taskId }),
      logged,
    });
    expect(kept).toContain('[redacted]');
    expect(kept).not.toContain(CANARY);
  });
});
