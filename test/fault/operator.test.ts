/** What an operator can do to a running task with Temporal's own tools: reset an activity, reset or end a workflow. */
import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { StoreKind } from '../support/fault-system.ts';

const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterAll(() => system.close());

/** A task whose attempt stands at `point` in a worker. */
async function standing(kind: StoreKind, action: string, point: 'after_intent' | 'after_effect') {
  const store = await system.store(kind);
  const taskQueue = unique('operator');
  const worker = await system.worker(store, { taskQueue, stop: { point } }).ready();
  const client = await system.client(store, taskQueue);
  const key = unique('key');
  const call = { action, args: { value: 'v' }, key, principal: PRINCIPAL };
  const { taskId, operationId } = await client.start(call);
  await worker.reached(1);
  const engine = await system.engine();
  return {
    store,
    taskQueue,
    worker,
    client,
    call,
    taskId,
    operationId,
    engine,
    namespace: system.temporal.namespace,
  };
}

/** The first workflow task's completion: what comes after it is done again. */
async function resetToStart({
  engine,
  namespace,
  taskId,
}: Awaited<ReturnType<typeof standing>>): Promise<void> {
  const execution = { workflowId: taskId };
  await engine.workflowService.resetWorkflowExecution({
    namespace,
    workflowExecution: execution,
    reason: 'an operator thinks it helps',
    workflowTaskFinishEventId: 4 as never,
    requestId: randomUUID(),
  });
}

const ACTIONS = ['target_conditional', 'target_unsafe_lookup'];

describe.each(STORES)('an operator, on %s', (kind) => {
  test.each(ACTIONS.flatMap((action) => ['goes on', 'dies'].map((then) => ({ action, then }))))(
    '[S2.12] crash by activity reset while $action has been applied, and its worker $then: still one effect',
    async ({ action, then }) => {
      const task = await standing(kind, action, 'after_effect');
      const { engine, namespace, taskId, operationId, worker, client, store, taskQueue } = task;
      const [pending] = (await engine.workflow.getHandle(taskId).describe()).raw.pendingActivities ?? [];
      await engine.workflowService.resetActivity({
        namespace,
        execution: { workflowId: taskId },
        id: String(pending?.activityId),
        resetHeartbeat: true,
      });
      if (then === 'goes on') await worker.order({ order: 'goOn' });
      else await worker.kill();
      const standby = then === 'dies' ? await system.worker(store, { taskQueue }).ready() : worker;
      expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
      expect(await system.target.count(operationId)).toBe(1);
      await standby.kill();
    },
  );

  test.each(ACTIONS)(
    '[S2.12] crash by workflow reset while %s has been applied: still one effect',
    async (action) => {
      const task = await standing(kind, action, 'after_effect');
      await resetToStart(task);
      const { worker, client, taskId, operationId } = task;
      await worker.order({ order: 'goOn' });
      expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
      expect(await system.target.count(operationId)).toBe(1);
      await worker.kill();
    },
  );

  test('[S2.12] [S3.4] a workflow reset after its end is answered from the row: still one effect', async () => {
    const task = await standing(kind, 'target_conditional', 'after_intent');
    const { worker, client, taskId, operationId } = task;
    await worker.order({ order: 'goOn' });
    await outcomeOf(client, taskId);
    await resetToStart(task);
    const again = await task.engine.workflow.getHandle(taskId).result();
    expect(again).toMatchObject({ status: 'completed', effect: 'applied', operationId });
    expect(await system.target.count(operationId)).toBe(1);
    await worker.kill();
  });

  test.each([
    ['after_intent', 'in doubt'],
    ['after_effect', 'applied'],
  ] as const)(
    '[S3.8] crash by termination of the workflow at %s (%s): the same call goes on under the next ordinal, one effect',
    async (point, _meaning) => {
      const { worker, client, call, taskId, operationId, engine } = await standing(
        kind,
        'target_unsafe_lookup',
        point,
      );
      await engine.workflow.getHandle(taskId).terminate('an operator loses patience');
      const again = await client.start(call);
      expect(again.operationId).toBe(operationId);
      expect(again.taskId).not.toBe(taskId);
      await worker.order({ order: 'goOn' });
      expect(await outcomeOf(client, again.taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
      expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
      expect(await system.target.count(operationId)).toBe(1);
      await worker.kill();
    },
  );
});
