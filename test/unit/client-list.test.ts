/** The list where a status is rare, and where only the engine knows it. The ledger is an array under its own rules. */
import { expect, test } from 'vitest';
import { listTasks } from '../../src/client/list.ts';
import { openStatusOf } from '../../src/client/task-facts.ts';
import type { Ledger, ListFilter, OperationRow, RowState } from '../../src/ledger/ledger.ts';
import { HandDrivenEngine } from '../support/hand-driven-engine.ts';

const TENANT = 'acme';
const NEWER = 5_200;

const rowOf = (at: number, state: RowState, action = 'pay') =>
  ({
    taskId: `task-${at}`,
    operationId: `op-${at}`,
    fingerprint: { sent: '', input: '' },
    ...{ tenant: TENANT, action, state, createdAt: at, updatedAt: at, keyed: true, end: null, edited: null },
    ...{ attentionAbout: state === 'attention' ? 'effect' : null, result: null },
  }) as OperationRow;

function ledgerOf(rows: OperationRow[]): Pick<Ledger, 'list' | 'findByTask'> {
  const newestFirst = [...rows].sort((one, other) => other.createdAt - one.createdAt);
  const fits = (row: OperationRow, { open, state, action, before }: ListFilter) =>
    (open === undefined || open === (row.end === null)) &&
    (state === undefined || state === row.state) &&
    (action === undefined || action === row.action) &&
    (before === undefined || row.createdAt < before);
  return {
    list: (filter) =>
      Promise.resolve(newestFirst.filter((row) => fits(row, filter)).slice(0, filter.limit ?? 100)),
    findByTask: (taskId) => Promise.resolve(rows.find((row) => row.taskId === taskId) ?? null),
  };
}

const NEWEST = Array.from({ length: NEWER }, (_, index) => rowOf(1_000 + index, 'reserved'));

async function listed(
  rows: OperationRow[],
  filter: { status: string; action?: string },
  engine = new HandDrivenEngine(),
) {
  const found = await listTasks({ ledger: ledgerOf(rows) as Ledger, engine }, TENANT, filter);
  return found.map(({ taskId, status }) => [taskId, status]);
}

test.each<RowState>(['attention', 'applied', 'released'])(
  '[S3.5] a task whose row is %s is listed by its status, however many newer ones are open',
  async (state) => {
    const old = rowOf(1, state);
    const status = openStatusOf(old);
    expect(await listed([...NEWEST, old], { status })).toEqual([['task-1', status]]);
  },
);

test('[S4.4] [S3.5] a halted approval and a procedure that needs a person are listed, though their rows do not say so', async () => {
  const rows = [...NEWEST, rowOf(3, 'reserved'), rowOf(2, 'in_flight', 'order'), rowOf(1, 'attention')];
  const ended = { ...rowOf(4, 'committed'), end: {} } as OperationRow;
  const engine = new HandDrivenEngine();
  const wait = (at: number, status: string, action = 'pay') =>
    engine.waits.push({ taskId: `task-${at}`, action, status, waitingSince: at, tenant: TENANT });
  wait(3, 'needs_attention');
  wait(2, 'needs_attention', 'order');
  wait(1, 'needs_attention');
  wait(4, 'needs_attention'); // resolved a moment ago: visibility follows
  wait(1_000, 'awaiting_approval');
  const all = [...rows, ended];
  expect(await listed(all, { status: 'needs_attention' }, engine)).toEqual(
    [3, 2, 1].map((at) => [`task-${at}`, 'needs_attention']),
  );
  expect(await listed(all, { status: 'needs_attention', action: 'order' }, engine)).toEqual([
    ['task-2', 'needs_attention'],
  ]);
});

test('[S3.5] without the engine the list of those that need a person is refused, not shortened', async () => {
  const engine = new HandDrivenEngine();
  engine.isReachable = false;
  await expect(listed([rowOf(1, 'attention')], { status: 'needs_attention' }, engine)).rejects.toMatchObject({
    code: 'engine_unavailable',
  });
  expect(await listed([rowOf(1, 'reserved')], { status: 'open' }, engine)).toHaveLength(1);
});
