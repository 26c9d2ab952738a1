/** What users of comparable systems reported, brought out here with real processes: durable operation, cases 1 to 16. */
import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { HoldfastClient } from '../../src/client/index.ts';
import { defineAction } from '../../src/index.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { endAllChildren } from '../support/child-process.ts';
import { faultActions } from '../support/fault-actions.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { StoreKind } from '../support/fault-system.ts';
import { connect } from '../support/mcp-clients.ts';
import { createTestDatabase } from '../support/postgres.ts';
import type { WorkerProcessOptions } from '../support/worker-options.ts';
import { workflowBundleFile } from '../support/workflow-bundle-file.ts';

Runtime.install({ logger: new DefaultLogger('WARN') });

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterEach(() => endAllChildren());
afterAll(() => system.close());

async function place(kind: StoreKind, options: Partial<WorkerProcessOptions> | null = {}) {
  const store = await system.store(kind);
  const taskQueue = unique('field');
  const worker = options && (await system.worker(store, { taskQueue, ...options }).ready());
  return { store, taskQueue, worker, client: await system.client(store, taskQueue) };
}

const callOf = (action: string, args: object = { value: 'v' }, key = unique('key')) => ({
  action,
  args: args as Record<string, string>,
  key,
  principal: PRINCIPAL,
});

const appliesOf = async (operationId: string) =>
  (await system.target.requests({ endpoint: 'apply', operationId })).length;

const python = (script: string, input: unknown): unknown => {
  const path = fileURLToPath(new URL(script, import.meta.url));
  const { stdout, stderr, error } = spawnSync('python3', [path], {
    input: JSON.stringify(input),
    encoding: 'utf8',
  });
  if (error) throw new Error('the tests need Python 3.10 on PATH, as `python3`', { cause: error });
  if (stdout === '') throw new Error(stderr);
  return JSON.parse(stdout) as unknown;
};

describe.each<StoreKind>(['sqlite', 'postgres'])('field cases, on %s', (kind) => {
  test('[case 1] crash in a late tool: replaying the whole turn runs no committed tool again', async () => {
    const { store, taskQueue, worker, client } = await place(kind);
    const turn = unique('turn');
    const refund = callOf('target_conditional', { value: 'refund' }, `${turn}/1`);
    const notify = callOf('target_conditional', { value: 'notify' }, `${turn}/2`);
    const refunded = await outcomeOf(client, (await client.start(refund)).taskId);
    // Commits, then its answer never comes.
    await system.target.setMode({ kind: 'applyThenHang' }, { times: 1 });
    const notified = await client.start(notify);
    await expect.poll(() => system.target.count(notified.operationId), { timeout: 20_000 }).toBe(1);
    await worker?.kill();
    await system.worker(store, { taskQueue }).ready();
    // Resumed from its checkpoint, the agent's turn begins at its beginning.
    expect(await client.start(refund)).toMatchObject({
      taskId: refunded.taskId,
      status: 'completed',
      replayed: true,
    });
    const again = await client.start(notify);
    expect(await outcomeOf(client, again.taskId)).toMatchObject({
      taskId: notified.taskId,
      status: 'completed',
    });
    expect([await appliesOf(refunded.operationId), await appliesOf(notified.operationId)]).toEqual([1, 1]);
  });

  test.each(['target_conditional', 'target_unsafe_lookup'])(
    '[case 2] retry: %s applies and then drops the connection; it is asked, not sent again',
    async (action) => {
      const { client } = await place(kind);
      await system.target.setMode({ kind: 'applyThenDrop' }, { times: 1 });
      const { taskId } = await client.start(callOf(action));
      const { operationId, status, effect } = await outcomeOf(client, taskId);
      const lookups = await system.target.requests({ endpoint: 'lookup', operationId });
      expect({ status, effect, applies: await appliesOf(operationId), lookups: lookups.length }).toEqual({
        status: 'completed',
        effect: 'applied',
        applies: 1,
        lookups: 1,
      });
    },
  );

  test('[case 4] timeout shorter than the tool: refused; and forced, the late result is kept as a late outcome', async () => {
    const slow = {
      name: 'slow',
      version: 1,
      description: 'Is slow.',
      effect: 'unsafe',
      input: z.object({}),
      output: z.object({}),
    } as const;
    expect(() => defineAction({ ...slow, deadlines: { attempt: '10s', tool: '11s' } })).toThrow(
      /deadlines\.(tool|attempt)/,
    );
    const { store, worker, client } = await place(kind, { stop: { point: 'before_sending', attempt: 1 } });
    const { taskId } = await client.start(callOf('target_stubborn'));
    const { operationId, status } = await outcomeOf(client, taskId); // the second attempt's doing
    expect(status).toBe('completed');
    await worker?.order({ order: 'goOn' });
    await expect
      .poll(async () => (await store.ledger.find(operationId))?.lateOutcome, { timeout: 20_000 })
      .toMatchObject({
        kind: 'applied',
      });
    expect({
      effects: await system.target.count(operationId),
      applies: await appliesOf(operationId),
    }).toEqual({
      effects: 1,
      applies: 2,
    });
  });

  test('[case 5] a retry policy on the workflow is refused; run again by force, the key still gives one effect', async () => {
    const { taskQueue } = await place(kind);
    const engine = await system.engine();
    const bare = {
      v: 1,
      action: 'target_unsafe',
      input: { value: 'v' },
      key: unique('key'),
      principal: PRINCIPAL,
    };
    const options = { workflowId: unique('forced'), taskQueue, args: [bare] };
    const refused = engine.workflow.execute('action', { ...options, retry: { maximumAttempts: 3 } });
    await expect(refused).rejects.toMatchObject({ cause: { type: 'invalid_arguments' } });
    const first = await engine.workflow.execute('action', options);
    const second = await engine.workflow.execute('action', options);
    expect([first, second]).toMatchObject([
      { status: 'completed', replayed: false },
      { status: 'completed', replayed: true, operationId: first.operationId },
    ]);
    expect(await appliesOf(first.operationId)).toBe(1);
  });

  test('[case 6] while a tool runs, messages for other calls and queries dispatch nothing a second time', async () => {
    const { client } = await place(kind);
    const gate = unique('gate');
    await system.target.setMode({ kind: 'hold', gate, when: 'beforeApply' }, { times: 1 });
    const { taskId, operationId } = await client.start(callOf('target_large', { value: 'v', bytes: 5 }));
    await system.target.reached(gate);
    const handle = (await system.engine()).workflow.getHandle(taskId);
    await handle.signal('resolve', { as: 'applied', by: 'somebody' });
    await handle.signal('approve', { callId: 'another#1' });
    await handle.query('task');
    await handle.query('events');
    await client.get(taskId, PRINCIPAL);
    await system.target.release(gate);
    expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed' });
    expect({
      effects: await system.target.count(operationId),
      applies: await appliesOf(operationId),
    }).toEqual({
      effects: 1,
      applies: 1,
    });
  });

  test('[case 7] crash with the effect applied and the claim expired: the second call verifies, it does not execute', async () => {
    const { store, taskQueue, worker, client } = await place(kind, { stop: { point: 'after_effect' } });
    const call = callOf('target_unsafe_lookup');
    const { taskId, operationId } = await client.start(call);
    await worker?.reached(1);
    await worker?.kill();
    const hasExpired = async () =>
      ((await store.ledger.find(operationId))?.claimedUntil ?? Infinity) < (await store.ledger.now());
    await expect.poll(hasExpired, { timeout: 20_000 }).toBe(true);
    const caller = await system.caller(store, { taskQueue }).ready();
    expect(await caller.order({ order: 'start', request: call })).toMatchObject({ taskId });
    await system.worker(store, { taskQueue }).ready();
    expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(await appliesOf(operationId)).toBe(1);
  });

  test('[case 8] a timeout says outcome unknown and whom to ask; the same call meets the same task', async () => {
    const { store, taskQueue } = await place(kind);
    const gateway = await system.caller(store, { taskQueue, gateway: { blockingMs: 20_000 } }).ready();
    const mcp = await connect('v2 modern', { transport: 'http', url: gateway.data['url'] ?? '' });
    await system.target.setMode({ kind: 'applyThenHang' }, { times: 1 });
    const args = { value: unique('v') };
    const first = await mcp.callTool('target_unsafe', args);
    const again = await mcp.callTool('target_unsafe', args);
    const task = first.structuredContent?.['task'] as { taskId: string; operationId: string };
    expect(first.structuredContent).toMatchObject({
      code: 'outcome_unknown',
      done: false,
      failed: false,
      callAgain: false,
      next: { tool: 'task_wait', arguments: { taskId: task.taskId } },
    });
    expect(again.structuredContent).toMatchObject({ task: { taskId: task.taskId, attached: true } });
    expect(await appliesOf(task.operationId)).toBe(1);
  });

  test('[case 9] [mode 8] same key, other arguments: a conflict that names the path and leaks no result', async () => {
    const { client } = await place(kind);
    const call = callOf('target_any', { amount: 10, to: 'a' });
    const { taskId, operationId } = await client.start(call);
    const { result } = await outcomeOf(client, taskId);
    const error: unknown = await client
      .start({ ...call, args: { amount: 1000, to: 'a' } })
      .catch((refusal: unknown) => refusal);
    expect(error).toMatchObject({ code: 'idempotency_conflict', details: { paths: ['/amount'] } });
    const { resourceId } = result as { resourceId: string };
    const said = JSON.stringify({ ...(error as object), message: (error as Error).message });
    expect(said).not.toMatch(new RegExp(`\\b${resourceId}\\b|1000|\\b10\\b`));
    expect(await appliesOf(operationId)).toBe(1);
  });

  test('[case 11] keys beyond the BMP hash in the order of RFC 8785, and a verifier in a second language agrees', async () => {
    const { store, client } = await place(kind);
    const args = { '\uFFFF': 2, '😀': 1, nested: { '😀': [1, { '\uFFFF': 'x', a: -0 }] } };
    const { taskId, operationId } = await client.start(callOf('target_any', args));
    await outcomeOf(client, taskId);
    const row = await store.ledger.find(operationId);
    const [theirs] = python('../vectors/fingerprint.py', [
      { tenant: PRINCIPAL.tenant, action: 'target_any', json: JSON.stringify(args) },
    ]) as { canonical: string; sha256: string }[];
    expect(row?.fingerprint.sent).toBe(theirs?.sha256);
    expect(theirs?.canonical.indexOf('😀')).toBeLessThan(theirs?.canonical.indexOf('\uFFFF') ?? -1);
    const audit = await store.ledger.audit({ taskId });
    expect(python('verify_audit.py', audit)).toEqual({ ok: true, entries: audit.length });
    expect(python('verify_audit.py', audit.with(0, { ...audit[0]!, tenant: 'other' }))).toMatchObject({
      ok: false,
    });
  });

  test('[case 12] what JSON can not keep is refused with its path before anything starts; what it can is kept apart', async () => {
    const { store, client } = await place(kind);
    const before = (await store.ledger.list({ tenant: PRINCIPAL.tenant, limit: 1000 })).length;
    const cyclic: Record<string, unknown> = {};
    cyclic['self'] = cyclic;
    const refused = {
      nan: Number.NaN,
      infinity: -Infinity,
      bigint: 1n,
      unsafe: 2 ** 53,
      undefinedInArray: [undefined],
      map: new Map(),
      set: new Set(),
      symbol: Symbol('s'),
      function: () => undefined,
      surrogate: 'a\ud800',
      cyclic,
    };
    for (const [name, value] of Object.entries(refused)) {
      await expect(client.start(callOf('target_any', { [name]: value })), name).rejects.toMatchObject({
        code: 'invalid_arguments',
        details: { issues: [{ path: expect.stringContaining(`/${name}`) }] },
      });
    }
    expect((await store.ledger.list({ tenant: PRINCIPAL.tenant, limit: 1000 })).length).toBe(before);
    const key = unique('key');
    const first = await client.start(callOf('target_any', { x: 0, gone: undefined }, key));
    await outcomeOf(client, first.taskId);
    expect(await client.start(callOf('target_any', { x: -0 }, key))).toMatchObject({ taskId: first.taskId });
    for (const x of ['0', null, false, '', [], [0], {}]) {
      await expect(client.start(callOf('target_any', { x }, key))).rejects.toMatchObject({
        code: 'idempotency_conflict',
        details: { paths: ['/x'] },
      });
    }
    expect(await appliesOf(first.operationId)).toBe(1);
  });

  test('[case 13] key order at any depth changes nothing; array order does', async () => {
    const { client } = await place(kind);
    const key = unique('key');
    const one = { a: { b: { c: { d: { e: 1, f: [1, 2] } } } }, z: 1 };
    const permuted = { z: 1, a: { b: { c: { d: { f: [1, 2], e: 1 } } } } };
    const otherArray = { z: 1, a: { b: { c: { d: { f: [2, 1], e: 1 } } } } };
    const { taskId, operationId } = await client.start(callOf('target_any', one, key));
    expect(await client.start(callOf('target_any', permuted, key))).toMatchObject({ taskId });
    await expect(client.start(callOf('target_any', otherArray, key))).rejects.toMatchObject({
      details: { paths: ['/a/b/c/d/f/0', '/a/b/c/d/f/1'] },
    });
    await outcomeOf(client, taskId);
    expect(await appliesOf(operationId)).toBe(1);
  });

  test('[case 14] results of 1.9 to 40 MB, arguments of 3 MB, 40 results at once: kept by hash or refused, never stuck', async () => {
    const { store, client } = await place(kind);
    await expect(client.start(callOf('target_any', { text: 'x'.repeat(3_000_000) }))).rejects.toMatchObject({
      code: 'payload_too_large',
    });
    for (const bytes of [1_900_000, 2_000_000, 2_100_000, 30_000_000]) {
      const { taskId } = await client.start(callOf('target_large', { value: 'v', bytes }));
      const { status, result } = await outcomeOf(client, taskId);
      expect({ status, length: (result as { text: string }).text.length }).toEqual({
        status: 'completed',
        length: bytes,
      });
      expect(JSON.stringify(await store.ledger.audit({ taskId }))).toMatch(/"sha256":"[0-9a-f]{64}"/);
    }
    const huge = await client.start(callOf('target_large', { value: 'v', bytes: 40_000_000 }));
    expect(await outcomeOf(client, huge.taskId)).toMatchObject({
      status: 'completed',
      effect: 'applied',
      result: null,
      resultDropped: { sha256: expect.stringMatching(/^[0-9a-f]{64}$/), bytes: expect.any(Number) },
    });
    const calls = Array.from({ length: 40 }, () =>
      client.start(callOf('target_large', { value: 'v', bytes: 150_000 })),
    );
    const outcomes = await Promise.all(
      (await Promise.all(calls)).map(({ taskId }) => outcomeOf(client, taskId)),
    );
    expect(outcomes.filter(({ status }) => status !== 'completed')).toEqual([]);
  });

  test('[case 15] crash in mid-task, then a worker with a cold cache and another deploy: it goes on, and its history replays', async () => {
    const { store, taskQueue, worker, client } = await place(kind);
    const gate = unique('gate');
    await system.target.setMode({ kind: 'hold', gate, when: 'afterApply' }, { times: 1 });
    const { taskId, operationId } = await client.start(callOf('target_conditional'));
    await system.target.reached(gate);
    await worker?.kill();
    await system.worker(store, { taskQueue, otherDeploy: true }).ready();
    expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed' });
    await system.target.release(gate);
    expect(await appliesOf(operationId)).toBe(1);
    const history = await (await system.engine()).workflow.getHandle(taskId).fetchHistory();
    const workflowBundle = { code: readFileSync(await workflowBundleFile(), 'utf8') };
    const sinks = { holdfastHints: { changed: { fn: () => undefined, callDuringReplay: false } } };
    await Worker.runReplayHistory({ workflowBundle, sinks, replayName: randomUUID() }, history, taskId);
  });
});

test('[case 3] one of two write tools forgets the key: the worker does not start, and says which', () => {
  const main = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));
  const config = fileURLToPath(new URL('../support/keyless-tool.config.ts', import.meta.url));
  const args = [
    '--experimental-strip-types',
    '--disable-warning=ExperimentalWarning',
    main,
    'worker',
    '--json',
    '--config',
    config,
  ];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 30_000 });
  expect(status).toBe(2);
  expect(stdout + stderr).toContain('forgets_the_key');
  expect(stdout + stderr).toContain('handlers.execute');
  expect(stdout + stderr).not.toContain('forwards_the_key');
});

test('[case 16] the ledger is away: a write is refused with a typed error, a read goes on where its contract lets it', async () => {
  const { store, taskQueue } = await place('postgres');
  const gone = await createTestDatabase();
  const ledger = await openLedger({ url: gone.url });
  await ledger.migrate();
  await gone.drop();
  const actions = faultActions({ withSecrets: false });
  const client = new HoldfastClient({ temporal: await system.engine(), ledger, actions, taskQueue });
  const before = await system.target.total();
  for (const action of ['target_conditional', 'target_unsafe']) {
    await expect(client.start(callOf(action))).rejects.toMatchObject({
      code: 'ledger_unavailable',
      retryable: true,
    });
  }
  await expect(client.start(callOf('target_safe', { resourceId: 'r0' }))).rejects.toMatchObject({
    code: 'ledger_unavailable',
  });
  expect(await system.target.total()).toBe(before);
  const { taskId } = await client.start(callOf('target_read_anyway', { resourceId: 'r0' }));
  const answer = await (await system.engine()).workflow.getHandle(taskId).result();
  expect(answer).toMatchObject({ status: 'completed', effect: 'none', result: { value: { found: false } } });
  expect(await store.ledger.findByTask(taskId)).toBeNull();
  await ledger.close();
});
