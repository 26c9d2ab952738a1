/** What every client meets, whatever its SDK, its protocol era and its transport. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import type { Gateway } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import { connect } from '../support/mcp-clients.ts';
import type { CallOptions, ClientKind, Place, TestClient, ToolAnswer } from '../support/mcp-clients.ts';

const taskOf = (answer: ToolAnswer) => answer._meta?.['holdfast/task'] as Record<string, unknown>;
const textOf = (answer: ToolAnswer) => answer.content.map(({ text }) => text).join('\n');

/** Enough for a call that must not end by itself, little enough that a client's own 60 s never matter. */
const PATIENT = { blockingMs: 30_000, progressIntervalMs: 0 };

interface Progress {
  progress: number;
  message?: string | undefined;
}

const soon = (check: () => void) => vi.waitFor(check, { timeout: 20_000 });

/** A call of `transfer` that is under way: its task is started and waited for. */
async function begin(client: TestClient, args: Record<string, unknown> = {}, options: CallOptions = {}) {
  const progress: Progress[] = [];
  const call = client.callTool(
    'transfer',
    { to: 'bob', amount: 5, ...args },
    { ...options, onprogress: (each) => progress.push(each) },
  );
  call.catch(() => undefined); // it is looked at where the test expects it to end
  await soon(() => expect(progress).toHaveLength(1));
  return { call, progress };
}

const kinds: ClientKind[] = ['v2 modern', 'v2 legacy', 'v1'];
const transports: Place['transport'][] = ['http', 'stdio'];

describe.each(transports)('over %s', (transport) => {
  describe.each(kinds)('a %s client without the Tasks extension', (kind) => {
    let gateway: Gateway;
    let client: TestClient;
    const open = async (limits: object = PATIENT) => {
      if (transport === 'stdio') return connect(kind, { transport, limits });
      gateway = drivenGateway({ limits }).gateway;
      const { url } = await gateway.serveHttp({ port: 0 });
      return connect(kind, { transport, url: `${url}/mcp` });
    };
    beforeEach(async () => {
      client = await open();
    });
    afterEach(async () => {
      await client.close();
      if (transport === 'http') await gateway.close();
    });

    it('lists actions with idempotencyKey where they change something, and the task tools [M1.1] [M1.3] [M3.2]', async () => {
      const tools = new Map((await client.listTools()).map((tool) => [tool.name, tool]));
      expect([...tools.keys()]).toEqual(
        expect.arrayContaining(['transfer', 'read_balance', 'task_get', 'task_wait', 'task_cancel']),
      );
      expect(tools.get('transfer')?.inputSchema).toHaveProperty('properties.idempotencyKey');
      expect(tools.get('read_balance')?.inputSchema).not.toHaveProperty('properties.idempotencyKey');
      expect(tools.get('read_balance')?.annotations).toMatchObject({ readOnlyHint: true });
      expect(tools.get('transfer')?.annotations).toMatchObject({
        readOnlyHint: false,
        destructiveHint: false,
        idempotentHint: false,
      });
    });

    it('is answered when the task ends, with strictly rising progress before and none after [M3.1] [M4.2]', async () => {
      const { call, progress } = await begin(client, { idempotencyKey: 'k1' });
      for (const message of ['one', 'two', 'three']) {
        await client.callTool('advance', { message });
        await soon(() => expect(progress.at(-1)?.message).toBe(message));
      }
      await client.callTool('release', { result: { receipt: 'r-1' } });
      const answer = await call;
      expect(answer.structuredContent).toEqual({ receipt: 'r-1' });
      expect(JSON.parse(answer.content[0]?.text ?? '')).toEqual({ receipt: 'r-1' });
      expect(taskOf(answer)).toMatchObject({
        status: 'completed',
        effect: 'applied',
        replayed: false,
        attached: false,
        autoRetry: true,
      });
      expect(progress.map((each) => each.progress)).toEqual([1, 2, 3, 4]);
      const again = await client.callTool('transfer', { to: 'bob', amount: 5, idempotencyKey: 'k1' });
      expect(taskOf(again)).toMatchObject({ taskId: taskOf(answer).taskId, replayed: true });
      expect(progress).toHaveLength(4);
    });

    it('is told in words and structure that an outcome is unknown, and not to call again [M1.5]', async () => {
      const { call } = await begin(client);
      await client.callTool('lose', {});
      const answer = await call;
      const { taskId } = taskOf(answer);
      expect(answer.isError ?? false).toBe(false);
      expect(answer.structuredContent).toMatchObject({
        code: 'outcome_unknown',
        done: false,
        failed: false,
        callAgain: false,
        next: { tool: 'task_wait', arguments: { taskId } },
      });
      expect(textOf(answer)).toMatch(
        /not known whether transfer took effect.*not done.*not failed.*[Dd]o not call transfer again/s,
      );
      expect(textOf(answer)).toContain(taskId);
    });

    it('whose call is dropped leaves the task running, and the repeated call finds it [M5.3] [M1.4]', async () => {
      const dropped = new AbortController();
      const { call: first } = await begin(client, {}, { signal: dropped.signal });
      dropped.abort('gone');
      await expect(first).rejects.toThrow();
      const { call: second } = await begin(client);
      await client.callTool('release', { result: { receipt: 'r-2' } });
      expect(taskOf(await second)).toMatchObject({ status: 'completed', attached: true, cause: 'committed' });
    });

    it('that sends a key for other arguments is told the paths that differ, as a tool error [M1.3]', async () => {
      const { call: first } = await begin(client, { idempotencyKey: 'k1' });
      await client.callTool('release', { result: null });
      await first;
      const answer = await client.callTool('transfer', { to: 'bob', amount: 6, idempotencyKey: 'k1' });
      expect(answer).toMatchObject({
        isError: true,
        structuredContent: { error: { code: 'idempotency_conflict', details: { paths: ['/amount'] } } },
      });
      expect(textOf(answer)).toMatch(/idempotency_conflict.*What to do/s);
    });

    it('may send the key in _meta, but not another one beside the argument [M1.3]', async () => {
      const meta = (key: string) => ({ meta: { 'holdfast/idempotencyKey': key } });
      const call = (args: object, key: string) =>
        client.callTool('transfer', { to: 'bob', amount: 5, ...args }, meta(key));
      const { call: first } = await begin(client, {}, meta('k7'));
      await client.callTool('release', { result: 'ok' });
      const { taskId } = taskOf(await first);
      expect(taskOf(await call({ idempotencyKey: 'k7' }, 'k7'))).toMatchObject({ taskId, replayed: true });
      expect(await call({ idempotencyKey: 'k8' }, 'k7')).toMatchObject({
        isError: true,
        structuredContent: { error: { code: 'invalid_arguments' } },
      });
    });

    it('is refused integers beyond 2^53 by path, never rounded [M1.6]', async () => {
      const answer = await client.callTool('transfer', { to: 'bob', amount: 2 ** 53 });
      expect(answer).toMatchObject({
        isError: true,
        structuredContent: {
          error: { code: 'invalid_arguments', details: { issues: [{ path: '/amount' }] } },
        },
      });
      expect(textOf(answer)).toMatch(/string/);
    });

    it('misusing the protocol gets a JSON-RPC error [M1.2]', async () => {
      await expect(client.callTool('no_such_tool', {})).rejects.toMatchObject({ code: -32602 });
    });

    it('is handed the task before its own timeout and goes on with the task tools [M3.1] [M3.2]', async () => {
      await client.close();
      if (transport === 'http') await gateway.close();
      client = await open({ ...PATIENT, blockingMs: 1_000 });
      const handed = await client.callTool('transfer', { to: 'bob', amount: 5 });
      const { taskId } = taskOf(handed) as { taskId: string };
      expect(handed).toMatchObject({
        structuredContent: {
          code: 'operation_in_progress',
          next: { tool: 'task_wait', arguments: { taskId } },
        },
      });
      expect(textOf(handed)).toMatch(/STILL WORKING.*not done.*not failed/s);
      expect(taskOf(await client.callTool('task_get', { taskId }))).toMatchObject({ status: 'running' });
      const cancelled = await client.callTool('task_cancel', { taskId, reason: 'changed my mind' });
      expect(cancelled.structuredContent).toMatchObject({ taskId, requested: true });
      const waiting = client.callTool('task_wait', { taskId });
      await client.callTool('release', { result: { receipt: 'r-3' } });
      expect(await waiting).toMatchObject({ structuredContent: { receipt: 'r-3' } });
      expect((await client.callTool('task_get', { taskId: 'task_other' })).structuredContent).toMatchObject({
        error: { code: 'task_not_found' },
      });
      for (const neither of [{}, { tool: 'transfer' }, { taskId, tool: 'transfer', idempotencyKey: 'k' }])
        expect((await client.callTool('task_get', neither)).structuredContent).toMatchObject({
          error: { code: 'invalid_arguments' },
        });
      const keyed = await client.callTool('transfer', { to: 'ann', amount: 7, idempotencyKey: 'order-7' });
      const byKey = { tool: 'transfer', idempotencyKey: 'order-7' };
      const found = await client.callTool('task_get', byKey);
      expect(taskOf(found).taskId).toBe(taskOf(keyed).taskId);
      expect(
        (await client.callTool('task_get', { ...byKey, idempotencyKey: 'order-8' })).structuredContent,
      ).toMatchObject({ error: { code: 'task_not_found' } });
    });
  });
});
