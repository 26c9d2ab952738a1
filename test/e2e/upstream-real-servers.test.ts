// What docs/upstream-servers.md and the configurations of examples/upstream build on, asked of the servers themselves, and
// what the process in the middle (lying-upstream.ts) makes of their answers.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { LyingControl } from '../support/lying-upstream-control.ts';
import { entryOf, versionOf } from '../support/upstream-real-packages.ts';

const WRAPPER = fileURLToPath(new URL('../support/lying-upstream.ts', import.meta.url));
const EXAMPLES = fileURLToPath(new URL('../../examples/upstream', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'holdfast-upstream-servers-'));
const clients: Client[] = [];
let folders = 0;

afterEach(async () => {
  for (const client of clients.splice(0)) await client.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const packageOf = (name: 'filesystem' | 'memory' | 'everything') =>
  `@modelcontextprotocol/server-${name}` as const;

async function open(
  name: 'filesystem' | 'memory' | 'everything',
  args: string[] = [],
  env: Record<string, string> = {},
) {
  const control = new LyingControl(join(folder, `lying-${++folders}`));
  const node = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [...node, WRAPPER, control.folder, process.execPath, entryOf(packageOf(name)), ...args],
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stderr: 'ignore',
  });
  const client = new Client({ name: 'test', version: '1' });
  await client.connect(transport);
  clients.push(client);
  const call = async (tool: string, given: Record<string, unknown>) => {
    const { content, structuredContent, isError } = await client.callTool({ name: tool, arguments: given });
    const text = content.map((part) => (part.type === 'text' ? part.text : '')).join('\n');
    return { isError: isError === true, text, structured: structuredContent };
  };
  return { client, control, call };
}

describe.each(['filesystem', 'memory', 'everything'] as const)('the configuration of %s', (name) => {
  it('starts the version that is tested here', () => {
    const config = readFileSync(join(EXAMPLES, name, 'holdfast.config.ts'), 'utf8');
    expect(config).toContain(`${packageOf(name)}@${versionOf(packageOf(name))}'`);
  });
});

describe('server-filesystem', () => {
  it('fails in words, can not delete, and replaces what is no UTF-8', async () => {
    const { client, call } = await open('filesystem', [folder]);
    const path = join(folder, 'a.txt');
    expect(await call('read_text_file', { path })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^ENOENT/),
    });
    expect(await call('write_file', { path: '/etc/holdfast', content: '' })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^Access denied/),
    });
    expect(await call('write_file', { path })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^MCP error -32602/),
    });
    expect((await call('write_file', { path, content: 'one' })).structured).toEqual({
      content: `Successfully wrote to ${path}`,
    });
    expect(readFileSync(path, 'utf8')).toBe('one');
    writeFileSync(join(folder, 'b'), Buffer.from([0xff]));
    expect((await call('read_text_file', { path: join(folder, 'b') })).text).toBe('�');
    expect(await call('move_file', { source: path, destination: join(folder, 'b') })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/^Destination already exists/),
    });
    const { tools } = await client.listTools();
    expect(tools.filter(({ name }) => /delete|remove|trash/.test(name))).toEqual([]);
  });
});

describe('server-memory', () => {
  const NAMES = ['c', 'd', 'e', 'f', 'g', 'h'];
  const entity = (name: string, observation: string) => ({
    name,
    entityType: 'service',
    observations: [observation],
  });

  it('leaves out what it has and says nothing of it, and loses one of two at once', async () => {
    const file = join(folder, 'memory.jsonl');
    const { call } = await open('memory', [], { MEMORY_FILE_PATH: file });
    await call('create_entities', { entities: [entity('a', 'old')] });
    expect(
      await call('create_entities', { entities: [entity('a', 'new'), entity('b', 'new')] }),
    ).toMatchObject({ isError: false, structured: { entities: [entity('b', 'new')] } });
    expect(await call('delete_entities', { entityNames: ['nobody'] })).toMatchObject({
      structured: { success: true },
    });
    const answers = await Promise.all(
      NAMES.map((name) => call('create_entities', { entities: [entity(name, 'new')] })),
    );
    expect(answers.filter(({ isError }) => isError)).toEqual([]);
    const { structured } = await call('open_nodes', { names: NAMES });
    expect((structured as { entities: unknown[] }).entities.length).toBeLessThan(NAMES.length);
  });
});

describe('server-everything', () => {
  it('has a tool that is only ever a task', async () => {
    const { client, call } = await open('everything');
    const list = async () => (await client.listTools()).tools.find(({ name }) => name.startsWith('simulate'));
    await expect.poll(list).toMatchObject({ execution: { taskSupport: 'required' } });
    expect(await call('simulate-research-query', { topic: 'kilns' })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/requires task augmentation/),
    });
  });
});

describe('the process in the middle', () => {
  it('has the effect done and the answer lost, answers without the effect, and holds either back', async () => {
    const path = join(folder, 'c.txt');
    const text = () => readFileSync(path, 'utf8');
    const { call, control } = await open('filesystem', [folder]);
    await call('write_file', { path, content: 'zero' });

    control.next('write_file', { kind: 'lies', answer: { content: [{ type: 'text', text: 'done' }] } });
    expect(await call('write_file', { path, content: 'one' })).toMatchObject({ text: 'done' });
    expect(text()).toBe('zero');

    const late = control.next('write_file', { kind: 'keeps the request' });
    const writing = call('write_file', { path, content: 'two' });
    await late.met();
    expect(text()).toBe('zero');
    late.open();
    await writing;
    expect(text()).toBe('two');

    const kept = control.next('write_file', { kind: 'keeps the answer' });
    const answered = call('write_file', { path, content: 'three' });
    await kept.met();
    expect(text()).toBe('three');
    kept.open();
    expect((await answered).isError).toBe(false);

    const deadly = control.next('write_file', { kind: 'dies after the effect' });
    const lost = call('write_file', { path, content: 'four' });
    await expect(lost).rejects.toThrow();
    await deadly.met();
    expect(text()).toBe('four');
    expect(control.calls('write_file')).toHaveLength(5);
  });
});
