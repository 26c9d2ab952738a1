/**
 * The gateway as it is deployed: real clients on a real HoldfastClient, Temporal, a worker in a process of its own, and
 * a target that counts what it really did.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { HoldfastClient } from '../../src/client/index.ts';
import { createGateway, toolOf } from '../../src/gateway/index.ts';
import type { Gateway } from '../../src/gateway/index.ts';
import type { TestChild } from '../support/child-process.ts';
import { faultActions } from '../support/fault-actions.ts';
import { FaultSystem, PRINCIPAL, unique } from '../support/fault-system.ts';
import { connect } from '../support/mcp-clients.ts';
import type { ClientKind, TestClient, ToolAnswer } from '../support/mcp-clients.ts';
import { connectTaskClient } from '../support/task-session.ts';
import type { TaskClientUnderTest } from '../support/task-session.ts';

let system: FaultSystem;
let client: HoldfastClient;
let worker: TestChild;
let taskQueue: string;
let gateway: Gateway;
let url: string;

beforeAll(async () => {
  system = await FaultSystem.open();
  taskQueue = unique('gateway');
  client = await system.client(await system.store('sqlite'), taskQueue);
  worker = await system.worker(await system.store('sqlite'), { taskQueue }).ready();
});
afterAll(() => system.close());
beforeEach(async () => {
  const tools = faultActions({ withSecrets: false }).map(({ contract }) => toolOf(contract));
  gateway = createGateway({
    client,
    tools,
    auth: { kind: 'loopback', principal: PRINCIPAL },
    limits: { blockingMs: 30_000, listenPollMs: 300 },
  });
  url = `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;
});
afterEach(() => gateway.close());

interface TaskMeta {
  taskId: string;
  operationId: string;
  status: string;
  effect: string | null;
  replayed: boolean;
  attached: boolean;
}
const taskOf = ({ _meta }: { _meta?: unknown }) => (_meta as { 'holdfast/task': TaskMeta })['holdfast/task'];
const textOf = (answer: ToolAnswer) => answer.content.map(({ text }) => text).join('\n');

describe.each(['v2 modern', 'v2 legacy', 'v1'] as ClientKind[])('a %s client', (kind) => {
  let mcp: TestClient;
  beforeEach(async () => {
    mcp = await connect(kind, { transport: 'http', url });
  });
  afterEach(() => mcp.close());

  it('calls an action twice under one key: one effect, the same result, flagged as replayed [M1.3] [M3.1]', async () => {
    const args = { value: unique('v'), idempotencyKey: unique('key') };
    const first = await mcp.callTool('target_conditional', args);
    const second = await mcp.callTool('target_conditional', args);
    expect(first.structuredContent).toMatchObject({ value: args.value });
    expect(second.structuredContent).toEqual(first.structuredContent);
    expect([taskOf(first), taskOf(second)]).toMatchObject([
      { status: 'completed', effect: 'applied', replayed: false },
      { taskId: taskOf(first).taskId, replayed: true },
    ]);
    expect(await system.target.count(taskOf(first).operationId)).toBe(1);
    const other = await mcp.callTool('target_conditional', { ...args, value: 'another' });
    expect(other).toMatchObject({
      isError: true,
      structuredContent: { error: { code: 'idempotency_conflict', details: { paths: ['/value'] } } },
    });
    expect(textOf(other)).not.toContain(args.value);
  });

  it('is told progress while the target takes its time [M3.1] [M4.2]', async () => {
    const value = unique('held');
    await system.target.setMode({ kind: 'hold', gate: value, when: 'beforeApply' }, { times: 1 });
    const progress: number[] = [];
    const call = mcp.callTool(
      'target_conditional',
      { value },
      { onprogress: (each) => progress.push(each.progress) },
    );
    await system.target.reached(value);
    await system.target.release(value);
    expect(taskOf(await call)).toMatchObject({ status: 'completed' });
    expect(progress.length).toBeGreaterThan(0);
    expect(progress).toEqual(progress.map((_each, index) => index + 1));
  });

  it('whose connection drops after the target acted calls again and finds the same task: one effect [M5.3] [case 2]', async () => {
    const value = unique('dropped');
    await system.target.setMode({ kind: 'hold', gate: value, when: 'afterApply' }, { times: 1 });
    const gone = new AbortController();
    const lost = mcp.callTool('target_conditional', { value }, { signal: gone.signal });
    lost.catch(() => undefined);
    await system.target.reached(value);
    gone.abort('gone');
    await expect(lost).rejects.toThrow();
    const again = mcp.callTool('target_conditional', { value });
    await delay(0);
    await system.target.release(value);
    const task = taskOf(await again);
    expect(task).toMatchObject({ status: 'completed' });
    expect(await system.target.count(task.operationId)).toBe(1);
  });

  it('learns that the outcome of an unsafe call is unknown, may not repeat it, and gets the answer a person finds [M1.5] [case 8]', async () => {
    await system.target.setMode({ kind: 'applyThenDrop' }, { times: 1 });
    const args = { value: unique('unsure') };
    const unsure = await mcp.callTool('target_unsafe', args);
    const { taskId, operationId } = taskOf(unsure);
    expect(unsure).toMatchObject({
      structuredContent: { code: 'outcome_unknown', callAgain: false, task: { status: 'needs_attention' } },
    });
    expect(textOf(unsure)).toMatch(/not done.*not failed.*Do not call target_unsafe again/s);
    // A model that calls again all the same meets the same task.
    expect(taskOf(await mcp.callTool('target_unsafe', args))).toMatchObject({ taskId, attached: true });
    const found = await fetch(`${system.target.url}/operations/${operationId}`);
    const { resourceId, value } = (await found.json()) as { resourceId: string; value: string };
    await client.resolve(taskId, PRINCIPAL, { as: 'applied', result: { resourceId, value } });
    expect(await mcp.callTool('task_wait', { taskId })).toMatchObject({ structuredContent: { resourceId } });
    expect(await system.target.count(operationId)).toBe(1);
  });

  it('sees a refusal for good as a tool error with the target’s reason [M2.2]', async () => {
    await system.target.setMode({ kind: 'refuse', status: 422, message: 'no such account' }, { times: 1 });
    const refused = await mcp.callTool('target_conditional', { value: unique('v') });
    expect(refused).toMatchObject({
      isError: true,
      structuredContent: { error: { code: 'permanent_failure' }, task: { status: 'failed', effect: 'none' } },
    });
  });

  it('reads through a safe action, and is refused arguments that do not fit [M1.2]', async () => {
    const put = await mcp.callTool('target_conditional', { value: unique('v') });
    const read = await mcp.callTool('target_safe', {
      resourceId: (put.structuredContent as { resourceId: string }).resourceId,
    });
    expect(taskOf(read)).toMatchObject({ status: 'completed', effect: 'none' });
    expect(await mcp.callTool('target_conditional', { value: 7 })).toMatchObject({
      isError: true,
      structuredContent: { error: { code: 'invalid_arguments', details: { issues: [{ path: '/value' }] } } },
    });
  });
});

describe('a call that a person must approve', () => {
  it('is asked about through the client’s form, and acts once when they agree [M3.1] [M2.3] [S4.7]', async () => {
    const value = unique('approved');
    const questions: string[] = [];
    const mcp = await connect('v2 modern', { transport: 'http', url }, (question) => {
      questions.push(question);
      return { action: 'accept', content: { decision: 'approve', reason: 'seen' } };
    });
    const answer = await mcp.callTool('target_approved', { value });
    await mcp.close();
    expect(answer).toMatchObject({ structuredContent: { value } });
    expect(questions).toHaveLength(1);
    expect(questions[0]).toContain(`Arguments: {"value":"${value}"}`);
    expect(await system.target.count(taskOf(answer).operationId)).toBe(1);
  });

  it('hands its task to a client without forms, and goes on with task_answer [M3.2] [M7.3]', async () => {
    const mcp = await connect('v1', { transport: 'http', url });
    const handed = await mcp.callTool('target_approved', { value: unique('approved') });
    const { taskId, operationId } = taskOf(handed);
    expect(handed).toMatchObject({ structuredContent: { code: 'awaiting_approval' } });
    expect(await system.target.count(operationId)).toBe(0);
    const answered = await mcp.callTool('task_answer', { taskId, callId: 'action#1', decision: 'approve' });
    expect(answered.structuredContent).toMatchObject({ accepted: true, code: 'approved' });
    expect(taskOf(await mcp.callTool('task_wait', { taskId }))).toMatchObject({ status: 'completed' });
    expect(await system.target.count(operationId)).toBe(1);
    await mcp.close();
  });
});

describe('a client that declared Tasks', () => {
  let mcp: TaskClientUnderTest;
  beforeEach(async () => {
    mcp = await connectTaskClient({ transport: 'http', url });
  });
  afterEach(() => mcp.close());
  const start = async (name: string, args: object) =>
    (await mcp.request('tools/call', { name, arguments: args })).result ?? {};
  const get = async (taskId: unknown) => (await mcp.request('tasks/get', { taskId })).result ?? {};

  it('gets the result at once from a quick action, the task from a slow one, and settles it [M2.1] [M2.2]', async () => {
    const quick = await start('target_inline', { value: unique('v') });
    expect(quick).toMatchObject({
      resultType: 'complete',
      _meta: { 'holdfast/task': { status: 'completed' } },
    });
    const value = unique('held');
    await system.target.setMode({ kind: 'hold', gate: value, when: 'beforeApply' }, { times: 1 });
    const execution = await mcp.session.callTool('target_conditional', { value });
    expect(execution.kind).toBe('task');
    await system.target.release(value);
    expect((await execution.settle()).outcome).toMatchObject({
      status: 'completed',
      result: { structuredContent: { value } },
    });
  });

  it('cancels a task whose effect is under way: acknowledged, and the effect’s outcome is the end [M2.4] [S7.4]', async () => {
    const value = unique('held');
    await system.target.setMode({ kind: 'hold', gate: value, when: 'afterApply' }, { times: 1 });
    const { taskId } = await start('target_conditional', { value });
    await system.target.reached(value);
    for (let twice = 0; twice < 2; twice += 1)
      expect((await mcp.request('tasks/cancel', { taskId })).result).toMatchObject({
        resultType: 'complete',
      });
    await system.target.release(value);
    await expect.poll(async () => (await get(taskId)).status, { timeout: 20_000 }).toBe('completed');
    expect(await get(taskId)).toMatchObject({ _meta: { 'holdfast/task': { effect: 'applied' } } });
    expect((await mcp.request('tasks/cancel', { taskId })).result).toMatchObject({ resultType: 'complete' });
  });

  it('hears of its task as it goes, and of its end with the result, without asking [M2.5]', async () => {
    const value = unique('held');
    await system.target.setMode({ kind: 'hold', gate: value, when: 'beforeApply' }, { times: 1 });
    const { taskId } = await start('target_conditional', { value });
    await system.target.reached(value);
    const { closed } = await mcp.listen({ taskIds: [taskId] });
    const heard = () => mcp.received.filter(({ method }) => method === 'notifications/tasks');
    await expect.poll(() => heard().at(-1)?.params).toMatchObject({ taskId, status: 'working' });
    await system.target.release(value);
    expect(await closed).toBe('graceful');
    const { _meta: read, ...task } = await get(taskId);
    expect(heard().at(-1)?.params).toMatchObject({
      ...{ taskId: task['taskId'], status: 'completed', statusMessage: task['statusMessage'] },
      result: { structuredContent: { value } },
      _meta: { 'holdfast/task': (read as Record<string, unknown>)['holdfast/task'] },
    });
    expect(await system.target.count(taskOf({ _meta: read }).operationId)).toBe(1);
  });

  it('reads a task while no worker lives: the last known state, marked stale, though nothing ends it [M2.2]', async () => {
    const value = unique('held');
    await system.target.setMode({ kind: 'hold', gate: value, when: 'beforeApply' }, { times: 1 });
    const { taskId } = await start('target_conditional', { value });
    await system.target.reached(value);
    await worker.kill();
    expect(await get(taskId)).toMatchObject({
      status: 'working',
      statusMessage: expect.stringMatching(/last known state/) as string,
    });
    await system.target.release(value);
    worker = await system.worker(await system.store('sqlite'), { taskQueue }).ready();
    await expect.poll(async () => (await get(taskId)).status, { timeout: 30_000 }).toBe('completed');
    expect(await system.target.count(taskOf(await get(taskId)).operationId)).toBe(1);
  });

  it('outlives its gateway: another one knows the task, its result and its key [case 29]', async () => {
    const args = { value: unique('v'), idempotencyKey: unique('key') };
    const created = await start('target_conditional', args);
    const { taskId } = taskOf(created);
    await gateway.close();
    const tools = faultActions({ withSecrets: false }).map(({ contract }) => toolOf(contract));
    gateway = createGateway({ client, tools, auth: { kind: 'loopback', principal: PRINCIPAL } });
    const other = await connectTaskClient({
      transport: 'http',
      url: `${(await gateway.serveHttp({ port: 0 })).url}/mcp`,
    });
    await expect
      .poll(async () => (await other.request('tasks/get', { taskId })).result?.status, { timeout: 20_000 })
      .toBe('completed');
    const again =
      (await other.request('tools/call', { name: 'target_conditional', arguments: args })).result ?? {};
    expect(taskOf(again)).toMatchObject({ taskId, replayed: true });
    await other.close();
  });
});
