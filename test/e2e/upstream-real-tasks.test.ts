// Tasks that other servers keep, over a real connection: FastMCP's, which are gone with its process, and the example's own, which are
// on disk. The printed and the fired are the oracle.
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import fastmcp from '../../examples/upstream/fastmcp/holdfast.config.ts';
import tasksExtension from '../../examples/upstream/tasks-extension/holdfast.config.ts';
import type { RemoteStatus, RemoteTaskHandle } from '../../src/contract/remote-server.ts';
import type { UpstreamDefinition } from '../../src/contract/upstream-definition.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { openUpstream } from '../../src/upstream/connection/open-upstream.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';
import { compileUpstream } from '../../src/upstream/upstream-actions.ts';
import { BeforeInMemory } from '../support/before-in-memory.ts';
import { HttpServerProcess } from '../support/upstream-real-processes.ts';

const folder = mkdtempSync(join(tmpdir(), 'holdfast-upstream-tasks-'));
const soon = () => AbortSignal.timeout(30_000);
const log = { info: () => undefined, warn: () => undefined };
let press: HttpServerProcess;
let kiln: HttpServerProcess;

const open = (identity: string, url: string): Upstream =>
  openUpstream({ identity, address: { url }, info: { name: 'test', version: '1' }, log });

async function begin(
  upstream: Upstream,
  tool: string,
  args: JsonObject,
  meta: JsonObject = {},
): Promise<RemoteTaskHandle> {
  const reply = await upstream.call({ tool, args, meta, signal: soon() });
  if (reply.kind !== 'task') throw new Error(`no task but ${JSON.stringify(reply)}`);
  return reply.task;
}

async function until(upstream: Upstream, task: RemoteTaskHandle, kind: RemoteStatus['kind']) {
  const read = () => upstream.remote.status(task, soon());
  await expect.poll(async () => (await read()).kind, { timeout: 30_000, interval: 100 }).toBe(kind);
  return read();
}

const linesOf = (file: string): JsonObject[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as JsonObject)
    : [];
const printed = () => linesOf(join(folder, 'press', 'printed.jsonl'));
const fired = () => linesOf(join(folder, 'kiln', 'fired.jsonl'));
const copyArrives = (edition: string) =>
  writeFileSync(join(folder, 'press', 'copy', `${edition}.txt`), `${edition}\n`);

beforeAll(async () => {
  for (const name of ['press', 'kiln']) mkdirSync(join(folder, name));
  [press, kiln] = await Promise.all([
    HttpServerProcess.press(join(folder, 'press')),
    HttpServerProcess.kiln(join(folder, 'kiln')),
  ]);
  await Promise.all([press.start(), kiln.start()]);
}, 400_000);
afterAll(async () => {
  await Promise.all([press.kill(), kiln.kill()]);
  rmSync(folder, { recursive: true, force: true });
});

describe('FastMCP with background tasks', () => {
  it('goes on while we are gone, asks, takes the answer, and prints once a key', async () => {
    const first = open('press', press.url);
    const task = await begin(first, 'print_with_imprint', { edition: 'monday', idempotency_key: 'k-1' });
    const asked = await until(first, task, 'input_required');
    if (asked.kind !== 'input_required') throw new Error('not asked');
    const [key = ''] = Object.keys(asked.requests);
    expect(asked.requests[key]).toMatchObject({
      method: 'elicitation/create',
      params: { message: 'Who answers for monday?' },
    });
    await first.close();

    const second = open('press', press.url);
    await second.remote.answer(task, { [key]: { action: 'accept', content: { name: 'ann' } } }, soon());
    expect(printed()).toEqual([]);
    copyArrives('monday');
    expect(await until(second, task, 'completed')).toMatchObject({
      result: { structuredContent: { edition: 'monday', run: 1 } },
    });
    const again = await begin(second, 'print_edition', { edition: 'monday', idempotency_key: 'k-1' });
    await until(second, again, 'completed');
    expect(printed()).toHaveLength(1);
    await second.close();
  });

  it('takes a cancel; killed, it knows of no task, and what was printed is found by its key', async () => {
    const upstream = open('press', press.url);
    const cancelled = await begin(upstream, 'print_edition', { edition: 'never', idempotency_key: 'k-2' });
    await upstream.remote.cancel(cancelled, soon());
    await until(upstream, cancelled, 'cancelled');
    const lost = await begin(upstream, 'print_edition', { edition: 'monday', idempotency_key: 'k-3' });
    await until(upstream, lost, 'completed');
    await press.kill();
    await press.start();
    expect(await upstream.remote.status(lost, soon())).toEqual({ kind: 'not_found' });
    const found = await upstream.call({
      tool: 'find_edition',
      args: { idempotency_key: 'k-3' },
      signal: soon(),
    });
    expect(found).toMatchObject({ kind: 'answer', structured: { found: true, edition: 'monday' } });
    await upstream.close();
  });
});

describe('a server that keeps its tasks', () => {
  it('is killed and started in the midst of one: the task goes on under its id, and fires once', async () => {
    const upstream = open('kiln', kiln.url);
    const meta = { 'example/idempotencyKey': 'k-1' };
    const task = await begin(upstream, 'fire_batch', { batch: 'b1', glaze: 'ask' }, meta);
    await until(upstream, task, 'input_required');
    await kiln.kill();
    await expect(upstream.remote.status(task, soon())).rejects.toThrow();
    await kiln.start();
    await upstream.remote.answer(task, { glaze: { action: 'accept', content: { glaze: 'blue' } } }, soon());
    await until(upstream, task, 'working');
    writeFileSync(join(folder, 'kiln', 'ready', 'b1'), '');
    expect(await until(upstream, task, 'completed')).toMatchObject({
      result: { structuredContent: { batch: 'b1', glaze: 'blue', number: 1 } },
    });
    const gone = await begin(upstream, 'fire_batch', { batch: 'never' }, meta);
    await upstream.remote.cancel(gone, soon());
    await until(upstream, gone, 'cancelled');
    expect(fired()).toHaveLength(1);
    await upstream.close();
  });
});

describe.each([
  { name: 'press', definition: fastmcp.upstreams?.['press'], server: () => press },
  { name: 'kiln', definition: tasksExtension.upstreams?.['kiln'], server: () => kiln },
])('the configuration of $name', ({ name, definition, server }) => {
  it('fits what the server publishes, and leaves out what it must not offer [M8.1]', async () => {
    const upstream = open(name, server().url);
    const listed = await upstream.tools(soon());
    const source = {
      name,
      definition: definition as UpstreamDefinition,
      upstream,
      before: new BeforeInMemory(),
    };
    const { tools, problems } = compileUpstream(source, listed);
    expect(problems).toEqual([]);
    expect(tools.flatMap(({ notes }) => notes.defects)).toEqual([]);
    expect(tools.filter(({ isOffered }) => !isOffered).map(({ tool }) => tool.name)).toHaveLength(1);
    await upstream.close();
  });
});
