// Somebody else's MCP server behind `holdfast dev`, by a configuration file and nothing else. Real processes, SQLite, embedded engine.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { McpClient } from '../../src/mcp-client/index.ts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { holdfastJson, startHoldfast } from '../support/holdfast-command.ts';
import type { RunningCommand } from '../support/holdfast-command.ts';

const CONFIG = fileURLToPath(new URL('../support/counter-upstream.config.ts', import.meta.url));

interface TaskJson {
  taskId: string;
  status: string;
  effect: string;
  cause: string;
  result: { structuredContent?: { count: number } } | null;
  alerts?: { type: string }[];
  replayed?: boolean;
}

let cwd: string;
let dev: RunningCommand;
const env = (own: NodeJS.ProcessEnv = {}) => ({
  HOLDFAST_PORT: '0',
  HOLDFAST_TEST_COUNTER: join(cwd, 'counter.json'),
  ...own,
});

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-upstream-'));
  dev = await startHoldfast({ cwd, env: env() }, 'dev', '--config', CONFIG);
});
afterAll(async () => {
  await dev.end();
  rmSync(cwd, { recursive: true, force: true });
});

const count = (key: string): number => {
  const file = join(cwd, 'counter.json');
  return existsSync(file)
    ? ((JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>)[key] ?? 0)
    : 0;
};
const command = <T>(own: NodeJS.ProcessEnv, ...args: string[]) =>
  holdfastJson<T>({ cwd, env: env(own) }, ...args);
const call = (tool: string, args: object, ...more: string[]) =>
  command<TaskJson>({}, 'call', tool, '--args', JSON.stringify(args), ...more);

async function until(what: string, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 600; tries += 1) {
    if (await holds()) return;
    await sleep(100);
  }
  throw new Error(`never: ${what}\n${dev.output().slice(-3_000)}`);
}
const shown = async (taskId: string) => (await command<TaskJson>({}, 'task', 'show', taskId)).value;

test('[M8.1] [M1.1] lists its tools beside each other with their own schemas; a server that is not there takes nothing along', async () => {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${dev.url}/mcp`)));
  const { tools } = await client.listTools();
  const names = tools.map(({ name }) => name);
  expect(names).toEqual(
    expect.arrayContaining(['counter__add', 'add_lying', 'counter__count', 'counter__poke']),
  );
  expect(names.filter((name) => name.startsWith('nobody'))).toEqual([]);
  const add = tools.find(({ name }) => name === 'counter__add');
  expect(add?.inputSchema).toMatchObject({
    required: ['key', 'amount'],
    properties: { idempotencyKey: { type: 'string' }, amount: { type: 'integer' } },
  });
  expect(tools.find(({ name }) => name === 'counter__count')?.outputSchema).toMatchObject({
    required: ['count'],
  });
  expect(add).not.toHaveProperty('outputSchema');
  const read = await client.callTool({ name: 'counter__count', arguments: { key: 'nothing' } });
  expect(read).toMatchObject({
    structuredContent: { count: 0 },
    content: [{ type: 'text', text: '{"count":0}' }],
  });
  await client.close();
});

test('[M8.1] [M1.3] the key that a caller gives the server is its key here: repeated, the call has its effect once', async () => {
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${dev.url}/mcp`)));
  const charge = async (own: object, amount = 4) =>
    client.callTool({ name: 'counter__charge', arguments: { key: 'charged', amount, ...own } });
  const { tools } = await client.listTools();
  expect(tools.find(({ name }) => name === 'counter__charge')?.inputSchema).toMatchObject({
    properties: { request_id: { type: 'string' } },
    required: ['key', 'amount', 'request_id'],
  });
  const done = { structuredContent: { count: 4 } };
  const task = (replayed: boolean) => ({ _meta: { 'holdfast/task': { status: 'completed', replayed } } });
  expect(await charge({ request_id: 'k-1' })).toMatchObject({ ...done, ...task(false) });
  expect(await charge({ request_id: 'k-1' })).toMatchObject({ ...done, ...task(true) });
  expect(count('charged')).toBe(4);
  const other = await charge({ request_id: 'k-1' }, 5);
  expect(JSON.stringify(other)).toContain('idempotency_conflict');
  // Under a key of ours, the server's own is of no meaning.
  for (const request_id of ['k-2', 'k-3'])
    expect(await charge({ request_id, idempotencyKey: 'ours' })).toMatchObject({
      structuredContent: { count: 8 },
    });
  expect(count('charged')).toBe(8);
  const { value } = await call('counter__charge', { key: 'charged', amount: 4, request_id: 'k-1' }, '--wait');
  expect(value).toMatchObject({ replayed: true, result: { structuredContent: { count: 4 } } });
  expect(count('charged')).toBe(8);
  await client.close();
  const retrying = await McpClient.connect({ server: { url: `${dev.url}/mcp` } });
  const again = await retrying.call('counter__charge', { key: 'charged', amount: 4, request_id: 'k-1' });
  await retrying.close();
  expect(again).toMatchObject({ kind: 'completed', replayed: true });
  expect(count('charged')).toBe(8);
});

test('[M8.1] what CEL says a person must approve is executed once when approved, verified, and its own answer passed on', async () => {
  const asked = await call('counter__add', { key: 'large', amount: 500 }, '--key', 'k1');
  expect(asked.value.status).toBe('awaiting_approval');
  expect(count('large')).toBe(0);
  const boss = { HOLDFAST_SUBJECT: 'chief', HOLDFAST_ROLES: 'boss' };
  await command(boss, 'task', 'approve', asked.value.taskId);
  const done = await call('counter__add', { key: 'large', amount: 500 }, '--key', 'k1', '--wait');
  expect(done.value).toMatchObject({
    status: 'completed',
    effect: 'applied',
    result: { structuredContent: { count: 500 } },
  });
  expect(count('large')).toBe(500);
});

test('[M8.1] cancelled while the server is at work, it is undone by the tool that undoes it', async () => {
  const started = await call('counter__add', { key: 'slow', amount: 5, waits: true }, '--key', 'k2');
  await until('the effect', () => count('slow') === 5);
  await command({}, 'task', 'cancel', started.value.taskId);
  writeFileSync(join(cwd, 'counter.json.go'), '');
  await until('the end', async () => (await shown(started.value.taskId)).status === 'cancelled');
  expect(await shown(started.value.taskId)).toMatchObject({ effect: 'rolled_back' });
  expect(count('slow')).toBe(0);
});

test('[M8.1] a tool that answers and does nothing does not end as done, and a person is told', async () => {
  const { value } = await call('add_lying', { key: 'lied', amount: 7 }, '--key', 'k3', '--wait');
  expect(value).toMatchObject({ status: 'failed', effect: 'none', cause: 'verify_failed' });
  expect(count('lied')).toBe(0);
  const { alerts } = await shown(value.taskId);
  expect(alerts).toContainEqual(expect.objectContaining({ type: 'verify_failed' }));
});

test('[M8.1] [S2.6] a tool that does more than it says is found out when read back: undone to what was before, and a person is told', async () => {
  await call('counter__add', { key: 'much', amount: 3 }, '--key', 'k5', '--wait');
  const { value } = await call('counter__overdo', { key: 'much', amount: 7 }, '--key', 'k6', '--wait');
  expect(value).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'verify_failed' });
  expect(count('much')).toBe(3);
  const { alerts } = await shown(value.taskId);
  expect(alerts).toContainEqual(expect.objectContaining({ type: 'verify_failed' }));
});

test('[M8.1] [case 3] what is not configured is never sent again: its server dies of the call, and a person is asked', async () => {
  const { value } = await call('counter__poke', { key: 'poked' }, '--key', 'k4', '--wait');
  expect(value).toMatchObject({ status: 'needs_attention' });
  expect(count('poked')).toBe(1);
  await until('the server is there again', async () => {
    const { value: read } = await call('counter__count', { key: 'poked' }, '--wait');
    return read.result?.structuredContent?.count === 1;
  });
});
