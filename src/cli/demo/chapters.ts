/** The demo's chapters: each does something real, asks the target's own books, and says whether it was as expected. */
import Database from 'better-sqlite3';
import { result } from './chapter.ts';
import type { Chapter } from './chapter.ts';
import { cancelledUnderWay, somebodyApproves, somebodyEdits } from './people-chapters.ts';
import { rehearsed } from './rehearsal-chapter.ts';
import { sagaUndone } from './saga-chapter.ts';
import { bothSidesOfARace, overloadedBuffer } from './stream-chapters.ts';
import type { Stage } from './stage.ts';
import { callTool } from './tool-call.ts';
import { until } from './until.ts';
import { somebodyElsesServer } from './upstream-chapter.ts';

const RESERVATION = { sku: 'widget', quantity: 3 };

const reserveOnce: Chapter = async ({ stage, say }) => {
  say('an agent reserves 3 widgets under the key order-1');
  const answer = await callTool(stage.mcp, 'reserve_warehouse_stock', {
    ...RESERVATION,
    idempotencyKey: 'order-1',
  });
  const effects = (await stage.warehouse.books())['reservations'] ?? -1;
  return result(
    'a reservation',
    'completed, one effect',
    answer,
    effects,
    answer.task.status === 'completed' && effects === 1,
  );
};

const sendAgain: Chapter = async ({ stage, say }) => {
  say('its connection dropped, so it sends the same call again, under a new request id');
  const answer = await callTool(stage.mcp, 'reserve_warehouse_stock', {
    ...RESERVATION,
    idempotencyKey: 'order-1',
  });
  const effects = (await stage.warehouse.books())['reservations'] ?? -1;
  const isReplayed = answer.task.replayed === true && answer.task.status === 'completed';
  return result(
    'the same call re-sent',
    'replayed, still one effect',
    answer,
    effects,
    isReplayed && effects === 1,
  );
};

const changeQuantity: Chapter = async ({ stage, say }) => {
  say('now with another quantity, but the same key');
  const answer = await callTool(stage.mcp, 'reserve_warehouse_stock', {
    sku: 'widget',
    quantity: 4,
    idempotencyKey: 'order-1',
  });
  const effects = (await stage.warehouse.books())['reservations'] ?? -1;
  const namesPath =
    answer.error?.code === 'idempotency_conflict' &&
    JSON.stringify(answer.error.details).includes('/quantity');
  const seen = namesPath ? 'refused: differs at /quantity' : answer.text;
  return {
    ...result(
      'changed under the same key',
      'refused, the path named',
      answer,
      effects,
      namesPath && effects === 1,
    ),
    seen,
  };
};

const killAfterEffect: Chapter = async (performance) => {
  const { stage, say } = performance;
  const before = (await stage.warehouse.books())['reservations'] ?? 0;
  await stage.warehouse.behave('hold', 1);
  const calling = callTool(stage.mcp, 'reserve_warehouse_stock', {
    ...RESERVATION,
    idempotencyKey: 'order-2',
  });
  await until(
    'the warehouse has reserved',
    async () => ((await stage.warehouse.books())['reservations'] ?? 0) > before,
  );
  say(`the warehouse has reserved but not answered yet: SIGKILL to worker ${performance.worker.pid}`);
  await performance.worker.kill();
  await stage.warehouse.behave('normal');
  await stage.warehouse.release();
  performance.worker = await stage.startWorker();
  say(`worker ${performance.worker.pid} takes over, asks the warehouse by operation id, and goes on`);
  const answer = await calling;
  const effects = ((await stage.warehouse.books())['reservations'] ?? -1) - before;
  return result(
    'worker killed after the effect',
    'recovered, one effect',
    answer,
    effects,
    answer.task.status === 'completed' && effects === 1,
  );
};

/** A transfer needs more than $1,000 in account A at the moment of execution, whatever it held when it was asked for. */
const balanceFell: Chapter = async (performance) => {
  const { stage, say } = performance;
  const first = performance.worker;
  first.signal('SIGSTOP');
  say('account A holds $1,500.00; an agent asks to transfer $100.00 to B');
  const calling = callTool(stage.mcp, 'transfer_funds', {
    from: 'A',
    to: 'B',
    amountCents: 10_000,
    idempotencyKey: 'transfer-1',
  });
  const bank = new Database(stage.ledgerFile);
  try {
    await until(
      'the task has started',
      async () => (await stage.ledger.list({ tenant: 'local', action: 'transfer_funds' })).length === 1,
    );
    bank.exec('BEGIN IMMEDIATE');
    first.signal('SIGCONT');
    const [row] = await stage.ledger.list({ tenant: 'local', action: 'transfer_funds' });
    await until('the worker is at it', () => isBeingWorkedOn(stage, row?.taskId ?? ''));
    say(`SIGKILL to worker ${first.pid} in the middle of it; meanwhile the balance of A falls to $900.00`);
    await first.kill();
    bank.exec("UPDATE example_account SET balance_cents = 90000 WHERE account_id = 'A'");
    bank.exec('COMMIT');
    performance.worker = await stage.startWorker();
    say(`worker ${performance.worker.pid} takes over and checks again, immediately before it would act`);
    const answer = await calling;
    const effects = (bank.prepare('SELECT count(*) AS n FROM example_transfer').get() as { n: number }).n;
    const isRefused = answer.task.status === 'failed' && answer.task.cause === 'precondition_failed';
    return result(
      'balance fell before the retry',
      'refused, nothing done',
      answer,
      effects,
      isRefused && effects === 0,
    );
  } finally {
    bank.close();
  }
};

async function isBeingWorkedOn(stage: Stage, taskId: string): Promise<boolean> {
  const { pendingWorkflowTask } = await stage.temporal.workflowService.describeWorkflowExecution({
    namespace: 'default',
    execution: { workflowId: taskId },
  });
  return pendingWorkflowTask?.startedTime != null;
}

const lyingProvider: Chapter = async ({ stage, say }) => {
  await stage.provider.behave('wrong', 1);
  say('the payment provider answers "charged $20.00" but charges $200.00');
  const charge = { customer: 'ann', amountCents: 2_000, currency: 'USD', idempotencyKey: 'charge-1' };
  const answer = await callTool(stage.mcp, 'charge_customer', charge);
  const { chargedCents = 0, refundedCents = -1, refunds = -1 } = await stage.provider.books();
  const alerts = await stage.ledger.alerts({ tenant: 'local' });
  for (const alert of alerts) say(`alert ${alert.type}: ${alert.message}`);
  const isUndone = answer.task.effect === 'rolled_back' && chargedCents === refundedCents && refunds === 1;
  const isAlerted = alerts.some((alert) => alert.type === 'verify_failed');
  return result(
    'a provider that lies',
    'verify fails, rolled back, a person alerted',
    answer,
    chargedCents - refundedCents,
    isUndone && isAlerted,
  );
};

const auditHolds: Chapter = async ({ stage, say }) => {
  const verdict = await stage.ledger.verifyAudit();
  const seen = verdict.ok
    ? `intact: ${verdict.entries} entries, ${verdict.tasks} chains`
    : `broken: ${verdict.reason}`;
  say(`every chain of the audit, entry by entry: ${seen}`);
  return {
    chapter: 'the audit',
    expected: 'every chain intact',
    seen,
    effects: 0,
    isAsExpected: verdict.ok && verdict.tasks >= 4,
  };
};

export const CHAPTERS: readonly Chapter[] = [
  reserveOnce,
  sendAgain,
  changeQuantity,
  killAfterEffect,
  balanceFell,
  lyingProvider,
  somebodyApproves,
  somebodyEdits,
  cancelledUnderWay,
  bothSidesOfARace,
  overloadedBuffer,
  sagaUndone,
  somebodyElsesServer,
  rehearsed,
  auditHolds,
];
