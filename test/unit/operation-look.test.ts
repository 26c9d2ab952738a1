/** S2.1: the outcome that a row stands for, in every state, for its own task and for another. */
import { describe, expect, test } from 'vitest';
import type { OperationRow, RowState } from '../../src/ledger/ledger.ts';
import { look } from '../../src/operation/look.ts';
import type { OperationOutcome } from '../../src/task/outcome.ts';
import { planOf } from '../support/plans.ts';

const rowOf = (overrides: Partial<OperationRow> = {}): OperationRow => ({
  operationId: 'op_test',
  tenant: 'local',
  subject: 'ann',
  action: 'reserve_inventory',
  key: 'order-1',
  keyed: true,
  contractVersion: 1,
  effect: 'conditional',
  state: 'reserved',
  ordinal: 1,
  taskId: 'task',
  attempt: 3,
  generation: 3,
  claimedUntil: null,
  attemptDeadline: null,
  executions: 0,
  fingerprint: { sent: 'sent-hash', input: 'input-hash' },
  arguments: { amount: 5 },
  result: null,
  failure: null,
  attentionAbout: null,
  end: null,
  lateOutcome: null,
  parentOperationId: null,
  edited: null,
  createdAt: 1,
  updatedAt: 1,
  ...overrides,
});

const asked = (row: OperationRow, overrides: object = {}): OperationOutcome | null =>
  look(row, { plan: planOf(), input: { amount: 5 }, taskId: 'task', ordinal: 1, attempt: 4, ...overrides });

describe('looking at a row', () => {
  test('[S2.1] its own task goes on from what is open and is told what is decided', () => {
    const kinds: [RowState, string | null][] = [
      ['reserved', null],
      ['released', null],
      ['in_flight', null],
      ['applied', null],
      ['committed', 'committed'],
      ['failed', 'failed'],
      ['refused', 'refused'],
      ['rolling_back', 'mismatch'],
      ['rolled_back', 'spent'],
      ['attention', 'unknown'],
      ['abandoned', 'spent'],
    ];
    for (const [state, kind] of kinds)
      expect([state, asked(rowOf({ state }))?.kind ?? null]).toEqual([state, kind]);
  });

  test('[S2.3] another task is superseded, unless the key is spent', () => {
    const kinds: [RowState, string][] = [
      ['reserved', 'fenceStale'],
      ['released', 'fenceStale'],
      ['in_flight', 'fenceStale'],
      ['applied', 'fenceStale'],
      ['committed', 'committed'],
      ['failed', 'failed'],
      ['refused', 'fenceStale'],
      ['rolling_back', 'fenceStale'],
      ['rolled_back', 'spent'],
      ['attention', 'fenceStale'],
      ['abandoned', 'spent'],
    ];
    for (const other of [{ taskId: 'other' }, { ordinal: 0 }]) {
      for (const [state, kind] of kinds) {
        const outcome = asked(rowOf({ state }), other);
        expect([state, outcome?.kind]).toEqual([state, kind]);
        if (outcome?.kind === 'fenceStale')
          expect(outcome).toEqual({ kind, rowAttempt: 3, superseded: true });
        if (outcome?.kind === 'committed') expect(outcome.replayed).toBe(true);
      }
    }
  });

  test('[S3.5] a spent key says how it ended, also where nobody recorded it', () => {
    expect(asked(rowOf({ state: 'abandoned' }))).toMatchObject({
      end: { status: 'failed', effect: 'unknown', cause: 'abandoned' },
    });
    expect(asked(rowOf({ state: 'rolled_back' }))).toMatchObject({
      end: { effect: 'rolled_back', cause: 'operation_rolled_back' },
    });
  });

  test('[S1.6] a task that was closed stays as it ended', () => {
    const end = {
      status: 'cancelled',
      effect: 'none',
      cause: 'cancelled',
      error: null,
      cancelRequested: true,
    } as const;
    expect(asked(rowOf({ state: 'released', end }))).toEqual({ kind: 'spent', end });
  });

  test('[S1.4] equality of either fingerprint, across too, is the same call', () => {
    const prints = [
      { sent: 'sent-hash', input: 'else' },
      { sent: 'else', input: 'input-hash' },
      { sent: 'input-hash', input: 'else' },
      { sent: 'else', input: 'sent-hash' },
    ];
    for (const fingerprint of prints) expect(asked(rowOf({ fingerprint }))).toBeNull();
    const row = rowOf({ fingerprint: { sent: 'x', input: 'y' }, arguments: { amount: 6, to: 'bob' } });
    expect(asked(row)).toEqual({ kind: 'conflict', paths: ['/amount', '/to'] });
    expect(asked({ ...row, state: 'committed' })).toMatchObject({ kind: 'conflict' });
  });
});
