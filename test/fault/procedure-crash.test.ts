/**
 * Workers of procedures killed by SIGKILL: while a decision is asked for, between two steps, and while a failed procedure
 * is undone. The target's own counter says what took place; a standby goes on where the killed worker left off.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { HoldfastClient } from '../../src/client/index.ts';
import { operationIdOf, rollbackOperationId, taskIdOf } from '../../src/contract/ids.ts';
import { defineProcedure } from '../../src/index.ts';
import { workflowSource } from '../../worker/workflow-source.ts';
import type { Stop } from '../support/child-messages.ts';
import type { TestChild } from '../support/child-process.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { Store, StoreKind } from '../support/fault-system.ts';
import { atMost } from './crash.ts';

const CODE = fileURLToPath(new URL('../support/procedures/crashed.ts', import.meta.url));
const contracts = ['decided', 'refunded', 'undone'].map((name) =>
  defineProcedure({ name, description: 'Is killed on the way.', input: z.object({}) }),
);
/** Most of a cell is waiting for a heartbeat that does not come. */
const AT_ONCE = 3;
const ARRIVAL_MS = 30_000;

let system: FaultSystem;
let folder: string;
let bundleFile: string;
const standbys = new Map<StoreKind, Promise<TestChild>>();

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-procedures-'));
  bundleFile = join(folder, 'bundle.js');
  const [opened, bundle] = await Promise.all([FaultSystem.open(), workflowSource(CODE)]);
  system = opened;
  if (!('code' in bundle)) throw new Error('bundled from a file');
  writeFileSync(bundleFile, bundle.code);
});
afterAll(async () => {
  await system?.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Run {
  store: Store;
  client: HoldfastClient;
  taskQueue: string;
  taskId: string;
  /** Of one of its steps. */
  operationOf(stepId: string, action?: string): string;
}

/** Begun, with no worker there yet: its steps' names are known before any of them is. */
async function begin(kind: StoreKind, procedure: string): Promise<Run> {
  const store = await system.store(kind);
  const taskQueue = unique(procedure);
  const client = new HoldfastClient({
    temporal: await system.engine(),
    ledger: store.ledger,
    actions: contracts,
    taskQueue,
  });
  const key = unique('key');
  const { taskId } = await client.start({ action: procedure, args: {}, key, principal: PRINCIPAL });
  expect(taskId).toBe(taskIdOf(operationIdOf(PRINCIPAL.tenant, procedure, key), 1));
  const operationOf = (stepId: string, action = 'target_conditional'): string =>
    operationIdOf(PRINCIPAL.tenant, action, `${taskId}/${stepId}`);
  return { store, client, taskQueue, taskId, operationOf };
}

/** A worker takes it to the place and is killed there; the standby goes on. */
async function killAt({ store, taskQueue }: Run, stop: Stop): Promise<void> {
  const victim = await system.worker(store, { taskQueue, bundleFile, stop }).ready();
  try {
    await victim.reached(1, { patienceMs: ARRIVAL_MS });
  } finally {
    await victim.kill();
  }
  const standby = standbys.get(store.kind) ?? system.worker(store, { bundleFile }).ready();
  standbys.set(store.kind, standby);
  await (await standby).order({ order: 'run', taskQueue });
}

/** How often each of these took place, by the target's book. */
const effectsOf = (operationIds: readonly string[]): Promise<number[]> =>
  Promise.all(operationIds.map((operationId) => system.target.count(operationId)));

/** What the target did last for this operation. */
async function newestOf(operationId: string): Promise<unknown> {
  return (await fetch(`${system.target.url}/operations/${operationId}`)).json();
}

const isAuditIntact = async ({ store, taskId }: Run): Promise<boolean> =>
  (await store.ledger.verifyAudit({ taskId })).ok;

const bounded = atMost(AT_ONCE);
const cells = <Cell extends { kinds: readonly StoreKind[] }>(all: readonly Cell[]) =>
  all.flatMap((cell) => cell.kinds.map((kind) => ({ ...cell, kind })));

const SQLITE: readonly StoreKind[] = ['sqlite'];
const BOTH: readonly StoreKind[] = ['sqlite', 'postgres'];

describe.concurrent('crash: a procedure’s worker killed by SIGKILL', () => {
  test.each(
    cells([
      { where: 'before the intent', step: 'advice', point: 'before_claim', asks: 1, kinds: SQLITE },
      { where: 'before the request', step: 'advice', point: 'after_intent', asks: 1, kinds: SQLITE },
      { where: 'between output and record', step: 'advice', point: 'after_effect', asks: 2, kinds: BOTH },
      { where: 'between record and use', step: 'advice', point: 'after_commit', asks: 1, kinds: BOTH },
      { where: 'after its use began', step: 'act', point: 'before_claim', asks: 1, kinds: SQLITE },
    ] as const),
  )('[S3.7] a decision, $where, on $kind: asked for $asks×, one answer acted on', ({ kind, ...cell }) =>
    bounded(async () => {
      const run = await begin(kind, 'decided');
      const [model, act] = [run.operationOf('advice', 'target_model'), run.operationOf('act')];
      const operationId = cell.step === 'act' ? act : model;
      await killAt(run, { point: cell.point, operationId });
      const { status, result } = await outcomeOf(run.client, run.taskId);
      const { answer } = result as { answer: string };
      expect({ status, effects: await effectsOf([model, act]) }).toEqual({
        status: 'completed',
        effects: [cell.asks, 1],
      });
      // What was acted on is what was recorded: the newest that the model said.
      expect(await newestOf(model)).toMatchObject({ resourceId: answer });
      expect(await newestOf(act)).toMatchObject({ value: answer });
      expect(await isAuditIntact(run)).toBe(true);
    }),
  );

  test.each(
    cells([
      { where: 'the refund took effect', step: 'refund', point: 'after_effect', kinds: SQLITE },
      { where: 'the refund is on record', step: 'refund', point: 'after_commit', kinds: BOTH },
      { where: 'before the notice is claimed', step: 'notify', point: 'before_claim', kinds: SQLITE },
      { where: 'the notice took effect', step: 'notify', point: 'after_effect', kinds: SQLITE },
    ] as const),
  )('[S6.3] [case 1] refund then notify, once $where, on $kind: each once', ({ kind, ...cell }) =>
    bounded(async () => {
      const run = await begin(kind, 'refunded');
      const [refund, notify] = [run.operationOf('refund'), run.operationOf('notify')];
      await killAt(run, { point: cell.point, operationId: run.operationOf(cell.step) });
      expect(await outcomeOf(run.client, run.taskId)).toMatchObject({
        status: 'completed',
        effect: 'applied',
      });
      const sent = await Promise.all(
        [refund, notify].map((operationId) => system.target.requests({ endpoint: 'apply', operationId })),
      );
      // The target dedupes, so what was sent is counted too.
      expect(sent.map(({ length }) => length)).toEqual([1, 1]);
      expect(await effectsOf([refund, notify])).toEqual([1, 1]);
      expect(await isAuditIntact(run)).toBe(true);
    }),
  );

  test.each(
    cells([
      { where: 'before the first undo', step: 'three', point: 'after_intent', kinds: SQLITE },
      {
        where: 'after an undo’s effect, before its record',
        step: 'three',
        point: 'after_effect',
        kinds: BOTH,
      },
      { where: 'between undos', step: 'two', point: 'before_claim', kinds: SQLITE },
      { where: 'after the last undo’s record', step: 'one', point: 'after_commit', kinds: SQLITE },
      { where: 'before the end is recorded', step: null, point: 'before_end', kinds: BOTH },
    ] as const),
  )('[S6.3] [case 27] a saga’s undo, $where, on $kind: each once, newest first', ({ kind, ...cell }) =>
    bounded(async () => {
      const run = await begin(kind, 'undone');
      await system.target.setMode(
        { kind: 'refuse', status: 422 },
        { operationId: run.operationOf('four', 'target_abortable') },
      );
      const steps = ['one', 'two', 'three'].map((stepId) => run.operationOf(stepId));
      const stopAt =
        cell.step === null
          ? { point: cell.point }
          : {
              point: cell.point,
              operationId: rollbackOperationId(run.operationOf(cell.step)),
              about: 'rollback' as const,
            };
      await killAt(run, stopAt);
      expect(await outcomeOf(run.client, run.taskId)).toMatchObject({
        status: 'failed',
        effect: 'rolled_back',
      });
      const { applied, undone, requests } = await system.target.report();
      expect(steps.map((step) => [applied[step], undone[step]])).toEqual(steps.map(() => [1, 1]));
      const undos = steps.map(rollbackOperationId);
      const asked = requests.flatMap(({ endpoint, operationId }) =>
        endpoint === 'undo' && operationId !== null && undos.includes(operationId) ? [operationId] : [],
      );
      expect([...new Set(asked)]).toEqual(undos.toReversed());
      // Asked again, under the same key, only where nothing could know of the first answer.
      expect(asked).toHaveLength(steps.length + (cell.point === 'after_effect' ? 1 : 0));
      expect(await isAuditIntact(run)).toBe(true);
    }),
  );
});
