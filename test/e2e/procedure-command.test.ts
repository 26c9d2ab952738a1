// A procedure from the configuration file alone: `holdfast dev`, `holdfast call`, and the tool list, in real processes.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { COMMAND, environment, holdfast, holdfastJson, startHoldfast } from '../support/holdfast-command.ts';
import type { RunningCommand } from '../support/holdfast-command.ts';

const SAGA = fileURLToPath(new URL('../support/saga.config.ts', import.meta.url));

let cwd: string;
let dev: RunningCommand;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-saga-'));
  dev = await startHoldfast({ cwd, env: { HOLDFAST_PORT: '0' } }, 'dev', '--config', SAGA);
});
afterAll(async () => {
  await dev?.end();
  rmSync(cwd, { recursive: true, force: true });
});

const call = (key: string, args: object) =>
  holdfastJson<Record<string, unknown> & { taskId: string }>(
    { cwd },
    ...['call', 'trip', '--args', JSON.stringify(args), '--key', key, '--wait'],
  );

it('`holdfast call` runs a procedure as it runs an action, and `task show` tells of its steps [S6.3]', async () => {
  const { code, value } = await call('trip-1', {});
  expect({ code, value }).toMatchObject({ code: 0, value: { status: 'completed', effect: 'applied' } });
  const shown = await holdfastJson<{ steps: object[]; events: object[] }>(
    { cwd },
    'task',
    'show',
    value.taskId,
  );
  expect(shown.value.steps).toMatchObject([
    { step: 'flight', action: 'book', status: 'completed' },
    { step: 'hotel', action: 'book', status: 'completed' },
    { step: 'car', action: 'book', status: 'completed' },
  ]);
  const text = await holdfast({ cwd }, 'task', 'show', value.taskId);
  expect(text.stdout).toMatch(/hotel/);
  const again = await call('trip-1', {});
  expect(again.value).toMatchObject({ taskId: value.taskId, replayed: true });
});

it('one that fails exits 1 and says what was undone [S6.3] permanent', async () => {
  const { code, value } = await call('trip-2', { fail: ['car'] });
  expect(code).toBe(1);
  expect(value).toMatchObject({ status: 'failed', effect: 'rolled_back', error: { code: 'sold_out' } });
  const { value: tasks } = await holdfastJson<object[]>({ cwd }, 'tasks');
  expect(tasks).toContainEqual(expect.objectContaining({ taskId: value.taskId, action: 'trip' }));
});

it('that asks two things at once is shown with both, and each is decided by its name [S4.1] approval', async () => {
  const asBea = { cwd, env: { HOLDFAST_SUBJECT: 'bea' } };
  const started = await holdfastJson<{ taskId: string }>({ cwd }, 'call', 'two_words', '--args', '{}');
  const { taskId } = started.value;
  const show = async () => (await holdfast(asBea, 'task', 'show', taskId)).stdout;
  await vi.waitFor(async () => expect(await show()).toMatch(/budget#1.*date#1/s), {
    timeout: 30_000,
    interval: 200,
  });
  const always = await holdfastJson<{ error: { code: string } }>(
    asBea,
    ...['task', 'approve', taskId, '--call', 'date#1', '--always'],
  );
  expect(always).toMatchObject({ code: 2, value: { error: { code: 'invalid_standing_rule' } } });
  const listed = await holdfastJson<{ otherApprovals: object[] }[]>(
    asBea,
    ...['tasks', '--status', 'input_required', '--action', 'two_words', '--limit', '1'],
  );
  expect(listed.value).toMatchObject([{ approval: { callId: 'budget#1' }, otherApprovals: [{}] }]);
  const approved = await holdfast(asBea, 'task', 'approve', taskId, '--call', 'date#1');
  expect(approved).toMatchObject({ code: 0, stdout: expect.stringMatching(/date#1/) as string });
  expect(approved.stdout).not.toMatch(/budget#1/);
  await holdfast(asBea, 'task', 'approve', taskId);
  await vi.waitFor(async () => expect(await show()).toMatch(/completed/), { timeout: 30_000, interval: 200 });
});

it('is a tool over MCP, and is called as one [S6.3]', async () => {
  const client = new Client({ name: 'test', version: '1' });
  const [command, ...args] = [...COMMAND, 'mcp'];
  const env = environment() as Record<string, string>;
  await client.connect(new StdioClientTransport({ command, args, cwd, env, stderr: 'ignore' }));
  try {
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toContain('trip');
    const result = await client.callTool({ name: 'trip', arguments: { idempotencyKey: 'trip-3' } });
    expect(result.isError ?? false).toBe(false);
  } finally {
    await client.close();
  }
});

it('code that reaches for I/O is refused at the start, with its name and what to do', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-saga-wrong-'));
  try {
    writeFileSync(
      join(folder, 'wrong.ts'),
      "import { readFileSync } from 'node:fs';\nexport const x = readFileSync;\n",
    );
    const config = `export default { actions: [], procedures: { code: './wrong.ts', contracts: [] } };\n`;
    writeFileSync(join(folder, 'holdfast.config.mjs'), config);
    const { code, stderr } = await holdfast(
      { cwd: folder, env: { HOLDFAST_PORT: '0' } },
      ...['dev', '--config', join(folder, 'holdfast.config.mjs')],
    );
    expect(code).toBe(2);
    expect(stderr).toMatch(/procedures\.code.*imports.*fs/s);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
