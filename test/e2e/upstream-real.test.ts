// Real MCP servers that others wrote, behind Holdfast from configuration files alone (examples/upstream). The files and the graph
// that the servers keep are the oracle, and what the press printed and the kiln fired; the process in the middle
// (lying-upstream.ts) loses, kills, holds and lies.
import { existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { JsonObject } from '../../src/task/json.ts';
import { LyingControl } from '../support/lying-upstream-control.ts';
import type { LyingFault } from '../support/lying-upstream-control.ts';
import { listedTools } from '../support/listed-tools.ts';
import { entryOf } from '../support/upstream-real-packages.ts';
import { HttpServerProcess } from '../support/upstream-real-processes.ts';
import type { TaskClientUnderTest } from '../support/task-session.ts';
import { threeCalls } from '../support/upstream-stage.ts';
import { UpstreamStage } from '../support/upstream-real-stage.ts';

const CONFIG = fileURLToPath(new URL('../support/upstream-real.config.ts', import.meta.url));

let stage: UpstreamStage;
let root: string;
let memoryFile: string;
let press: HttpServerProcess;
let kiln: HttpServerProcess;
const lying = {} as Record<'files' | 'memory' | 'everything', LyingControl>;

beforeAll(async () => {
  stage = await UpstreamStage.open(CONFIG, async (folder) => {
    root = join(folder, 'root');
    mkdirSync(root);
    memoryFile = join(folder, 'memory.jsonl');
    for (const name of ['files', 'memory', 'everything'] as const)
      lying[name] = new LyingControl(join(folder, name));
    for (const name of ['press', 'kiln']) mkdirSync(join(folder, name));
    [press, kiln] = await Promise.all([
      HttpServerProcess.press(join(folder, 'press')),
      HttpServerProcess.kiln(join(folder, 'kiln')),
    ]);
    await Promise.all([press.start(), kiln.start()]);
    return {
      ...{ UPSTREAM_FOLDER: folder, FILES_ROOT: root, MEMORY_FILE_PATH: memoryFile },
      ...{ PRESS_URL: press.url, KILN_URL: kiln.url },
    };
  });
}, 400_000);
afterAll(async () => {
  await Promise.all([press.kill(), kiln.kill()]);
  await stage.close();
});

const at = (name: string) => join(root, name);
const read = (name: string) => readFileSync(at(name), 'utf8');
const linesOf = (file: string): JsonObject[] =>
  existsSync(file)
    ? readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line !== '')
        .map((line) => JSON.parse(line) as JsonObject)
    : [];
const graph = () => linesOf(memoryFile);
const entities = (name: string) =>
  graph().filter((each) => each['type'] === 'entity' && each['name'] === name);
const entity = (name: string) => ({ name, entityType: 'service', observations: ['made by a test'] });

/** What the calls of the next test add to what the server was called with. */
const counting = (server: keyof typeof lying, tool: string) => {
  const before = lying[server].calls(tool).length;
  return () => lying[server].calls(tool).length - before;
};

describe('what clients are offered', () => {
  test('the schemas and words of the servers, byte for byte but for the key of what changes something, and not what is hidden [M8.1] [M8.2] [M1.1] [M1.3]', async () => {
    const client = new Client({ name: 'direct', version: '1' });
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [entryOf('@modelcontextprotocol/server-filesystem'), root],
        stderr: 'ignore',
      }),
    );
    const own = await listedTools(client);
    await client.close();
    const tools = await listedTools(stage.client);
    expect(own).not.toEqual([]);
    for (const { name, inputSchema, description } of own) {
      const offered = tools.find((tool) => tool.name === `files__${name}`);
      const { idempotencyKey, ...properties } = offered?.inputSchema['properties'] as JsonObject;
      const withoutKey = { ...offered?.inputSchema, properties };
      expect(JSON.stringify(withoutKey), name).toBe(JSON.stringify(inputSchema));
      expect(idempotencyKey !== undefined, name).toBe(/^(write|edit|create|move)_/.test(name));
      expect(offered?.description, name).toContain(description);
    }
    const names = tools.map(({ name }) => name);
    expect(names).toContain('everything__get-sum');
    expect(names).not.toContain('everything__get-env');
    expect(names.every((name) => /^[A-Za-z0-9_-]{1,64}$/.test(name))).toBe(true);
  });

  test('what only reads passes through without a task, and its failure is its own [M8.1]', async () => {
    writeFileSync(at('read.txt'), 'as it is');
    expect(await stage.call('files__read_text_file', { path: at('read.txt') })).toMatchObject({
      isError: false,
      structured: { content: 'as it is' },
    });
    expect(await stage.call('files__read_text_file', { path: at('nowhere.txt') })).toMatchObject({
      isError: true,
      text: expect.stringMatching(/ENOENT/),
    });
    expect((await stage.call('everything__get-sum', { a: 1, b: 2 })).text).toContain('3');
    expect(await stage.ledger.list({ tenant: 'local' })).toEqual([]);
  });
});

/** Where the effect can be lost from sight, and how often the server is then asked for it in all. */
const WINDOWS: { name: string; fault: LyingFault; kills: boolean; calls: number }[] = [
  {
    name: 'the worker is killed after the effect',
    fault: { kind: 'keeps the answer' },
    kills: true,
    calls: 1,
  },
  {
    name: 'the server is killed after the effect',
    fault: { kind: 'dies after the effect' },
    kills: false,
    calls: 1,
  },
  {
    name: 'the server is killed before the effect',
    fault: { kind: 'dies before the effect' },
    kills: false,
    calls: 2,
  },
  { name: 'the answer is lost', fault: { kind: 'swallows the answer' }, kills: false, calls: 1 },
];

describe.each(WINDOWS)('$name', ({ fault, kills, calls }) => {
  const slug = fault.kind.replaceAll(' ', '-');

  async function through(server: 'files' | 'memory', tool: string, args: JsonObject) {
    const placed = lying[server].next(tool, fault);
    const called = counting(server, tool);
    const calling = stage.call(`${server}__${tool}`, args, { key: `${tool}-${slug}` });
    if (kills) {
      await placed.met();
      await stage.killWorker();
      await stage.startWorker();
    }
    const answer = await calling;
    expect(answer.task).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(called()).toBe(calls);
    const again = await stage.call(`${server}__${tool}`, args, { key: `${tool}-${slug}` });
    expect(again.task).toMatchObject({ replayed: true, taskId: answer.task.taskId });
    expect(called()).toBe(calls);
  }

  test('a file is written once [M8.3] [S2.11]', async () => {
    const path = at(`${slug}.txt`);
    writeFileSync(path, 'before');
    await through('files', 'write_file', { path, content: `after ${slug}` });
    expect(read(`${slug}.txt`)).toBe(`after ${slug}`);
  });

  test('an entity is created once [M8.3] [S2.11]', async () => {
    await through('memory', 'create_entities', { entities: [entity(slug)] });
    expect(entities(slug)).toHaveLength(1);
  });
});

describe('a tool that lies', () => {
  test('loses one of two at once, and says "created" to both: one at a time, it keeps both [S8.2]', async () => {
    const names = ['at-once-1', 'at-once-2', 'at-once-3'];
    const answers = await Promise.all(
      names.map((name) =>
        stage.call('memory__create_entities', { entities: [entity(name)] }, { key: `create-${name}` }),
      ),
    );
    expect(answers.map(({ task }) => task.status)).toEqual(names.map(() => 'completed'));
    for (const name of names) expect(entities(name), name).toHaveLength(1);
  });

  test('says "created" and created nothing: read back, nothing is claimed [S2.6]', async () => {
    lying.memory.next('create_entities', {
      kind: 'lies',
      answer: { content: [{ type: 'text', text: '[]' }], structuredContent: { entities: [] } },
    });
    const args = { entities: [entity('phantom')] };
    const answer = await stage.call('memory__create_entities', args, { key: 'phantom' });
    expect(answer.task).toMatchObject({ status: 'failed', effect: 'none', cause: 'verify_failed' });
    expect(entities('phantom')).toEqual([]);
  });

  test('says "written" and wrote nothing: read back, nothing is claimed [S2.6]', async () => {
    writeFileSync(at('lie.txt'), 'untouched');
    lying.files.next('write_file', {
      kind: 'lies',
      answer: {
        content: [{ type: 'text', text: 'Successfully wrote' }],
        structuredContent: { content: 'ok' },
      },
    });
    const answer = await stage.call(
      'files__write_file',
      { path: at('lie.txt'), content: 'never' },
      { key: 'lie-1' },
    );
    expect(answer.task).toMatchObject({ status: 'failed', effect: 'none', cause: 'verify_failed' });
    expect(read('lie.txt')).toBe('untouched');
  });
});

describe('a task that the server keeps', () => {
  const WAIT = { timeout: 60_000, interval: 100 };
  const printed = (edition: string) =>
    linesOf(join(stage.folder, 'press', 'printed.jsonl')).filter((line) => line['edition'] === edition);
  const fired = (batch: string) =>
    linesOf(join(stage.folder, 'kiln', 'fired.jsonl')).filter((line) => line['batch'] === batch);
  const copyArrives = (edition: string) =>
    writeFileSync(join(stage.folder, 'press', 'copy', `${edition}.txt`), `${edition}\n`);

  let person: TaskClientUnderTest;
  beforeAll(async () => {
    person = await stage.personClient();
  });
  afterAll(() => person.close());

  /** The task of a tool that was called here once, when its server has told of it. */
  async function watched(tool: string): Promise<string> {
    const seen = async () => {
      const [row] = await stage.ledger.list({ tenant: 'local', action: tool, limit: 1 });
      return row ? ((await stage.ledger.findRemoteTask(row.operationId))?.seen ?? null) : null;
    };
    await expect.poll(seen, WAIT).not.toBeNull();
    return stage.taskOf(tool);
  }

  /** What a task asks a person for: the key to answer under, and the server's request. */
  async function question(taskId: string): Promise<[string, JsonObject]> {
    const open = async () => {
      const { result } = await person.request('tasks/get', { taskId });
      return Object.entries((result?.['inputRequests'] ?? {}) as Record<string, JsonObject>);
    };
    await expect.poll(open, WAIT).toHaveLength(1);
    const [asked] = await open();
    return asked ?? ['', {}];
  }

  async function answer(taskId: string, key: string, content: JsonObject): Promise<void> {
    const inputResponses = { [key]: { action: 'accept', content } };
    const { error } = await person.request('tasks/update', { taskId, inputResponses });
    expect(error).toBeUndefined();
  }

  test('asks while its server is killed: answered meanwhile, it goes on, and is fired once [M8.4] [S8.4] [S2.11]', async () => {
    const args = { batch: 'b-1', glaze: 'ask' };
    const calling = stage.call('kiln__fire_batch', args, { key: 'b-1' });
    const taskId = await watched('kiln__fire_batch');
    const [key, asked] = await question(taskId);
    expect(asked).toMatchObject({ params: { message: 'Which glaze for b-1?' } });
    await kiln.kill();
    await answer(taskId, key, { glaze: 'blue' });
    await kiln.start();
    writeFileSync(join(stage.folder, 'kiln', 'ready', 'b-1'), '');
    const { task, structured } = await calling;
    expect(task).toMatchObject({ status: 'completed', effect: 'applied', taskId });
    expect(structured).toMatchObject({ batch: 'b-1', glaze: 'blue' });
    const again = await stage.call('kiln__fire_batch', args, { key: 'b-1' });
    expect(again.task).toMatchObject({ replayed: true, taskId });
    expect(fired('b-1')).toEqual([expect.objectContaining({ glaze: 'blue' })]);
  }, 240_000);

  test('asks, takes the answer, and is printed once with it [M8.4] [S2.11]', async () => {
    const calling = stage.call('press__print_with_imprint', { edition: 'monday' }, { key: 'monday' });
    const taskId = await watched('press__print_with_imprint');
    const [key, asked] = await question(taskId);
    expect(asked).toMatchObject({ params: { message: 'Who answers for monday?' } });
    expect(printed('monday')).toEqual([]);
    await answer(taskId, key, { name: 'ann' });
    copyArrives('monday');
    const { task, structured } = await calling;
    expect(task).toMatchObject({ status: 'completed', effect: 'applied', taskId });
    expect(structured).toMatchObject({ edition: 'monday' });
    expect(printed('monday')).toEqual([expect.objectContaining({ text: 'monday\nV.i.S.d.P. ann\n' })]);
  });

  test('is done while nobody watches, and forgotten with its server’s process: found by its key, and not sent again [M8.4] [S2.4] [S2.11]', async () => {
    const calling = stage.call('press__print_edition', { edition: 'tuesday' }, { key: 'tuesday' });
    const taskId = await watched('press__print_edition');
    await stage.killWorker();
    copyArrives('tuesday');
    await expect.poll(() => printed('tuesday').length, WAIT).toBe(1);
    await press.kill();
    await press.start();
    await stage.startWorker();
    expect((await calling).task).toMatchObject({ status: 'completed', effect: 'applied', taskId });
    expect(printed('tuesday')).toHaveLength(1);
  }, 240_000);

  test('of a read is watched to its end, and its result is the call’s [M8.4]', async () => {
    const called = counting('everything', 'simulate-research-query');
    const answer = await stage.call('everything__simulate-research-query', { topic: 'kilns' });
    expect(answer).toMatchObject({ isError: false, task: { status: 'completed' } });
    expect(answer.text).toContain('# Research Report: kilns');
    expect(called()).toBe(1);
  });
});

describe('a person is asked', () => {
  test('by what the call says, and nothing happens before [M8.1] [S4.1]', async () => {
    const args = { path: at('service.env'), content: 'PORT=1' };
    const asked = await stage.call('files__write_file', args, { key: 'env-1' });
    expect(asked.task).toMatchObject({ status: 'awaiting_approval' });
    expect(existsSync(args.path)).toBe(false);
    const taskId = asked.task.taskId ?? '';
    const operator = { HOLDFAST_SUBJECT: 'olga', HOLDFAST_ROLES: 'operator' };
    expect(await stage.commandAs(operator, 'task', 'approve', taskId)).toMatchObject({ code: 'approved' });
    const answer = await stage.call('files__write_file', args, { key: 'env-1' });
    expect(answer.task).toMatchObject({ status: 'completed', effect: 'applied', taskId });
    expect(read('service.env')).toBe('PORT=1');
  });
});

describe('undone', () => {
  async function cancelledUnderWay(
    server: 'files' | 'memory',
    tool: string,
    args: JsonObject,
    whileThere: () => void,
  ) {
    const kept = lying[server].next(tool, { kind: 'keeps the answer' });
    const calling = stage.call(`${server}__${tool}`, args, { key: `undo-${tool}-${JSON.stringify(args)}` });
    await kept.met();
    whileThere();
    const taskId = await stage.taskOf(`${server}__${tool}`);
    await stage.call('task_cancel', { taskId });
    kept.open();
    expect((await calling).task).toMatchObject({ status: 'cancelled', effect: 'rolled_back', taskId });
    return stage.ledger.audit({ taskId });
  }

  test('a cancelled write leaves what was there [M8.1] [S6.2]', async () => {
    writeFileSync(at('config.txt'), 'the old\r\nlines');
    const args = { path: at('config.txt'), content: 'new' };
    await cancelledUnderWay('files', 'write_file', args, () => expect(read('config.txt')).toBe('new'));
    expect(read('config.txt')).toBe('the old\r\nlines');
  });

  test('a cancelled write of a new file leaves none, and says where it went [S6.2]', async () => {
    const args = { path: at('fresh.txt'), content: 'made' };
    const audit = await cancelledUnderWay('files', 'write_file', args, () =>
      expect(read('fresh.txt')).toBe('made'),
    );
    expect(existsSync(at('fresh.txt'))).toBe(false);
    const kept = readdirSync(at('undone'));
    expect(kept).toHaveLength(1);
    expect(JSON.stringify(audit)).toContain(`undone/${kept[0]}`);
  });

  test('deleted entities come back with their relations [S6.2]', async () => {
    await stage.call('memory__create_entities', { entities: [entity('shop')] }, { key: 'shop' });
    const relation = { from: 'shop', to: 'lie-detector', relationType: 'uses' };
    await stage.call('memory__create_relations', { relations: [relation] }, { key: 'uses' });
    await cancelledUnderWay('memory', 'delete_entities', { entityNames: ['shop'] }, () =>
      expect(entities('shop')).toHaveLength(0),
    );
    expect(entities('shop')).toEqual([{ type: 'entity', ...entity('shop') }]);
    expect(graph()).toContainEqual({ type: 'relation', ...relation });
  });
});

describe('before anything is sent', () => {
  test('a file that could not be put back is not overwritten [S2.2]', async () => {
    writeFileSync(at('image.bin'), Buffer.from([0xff, 0xfe, 0x00]));
    const called = counting('files', 'write_file');
    const args = { path: at('image.bin'), content: 'text' };
    const answer = await stage.call('files__write_file', args, { key: 'binary' });
    expect(answer.task).toMatchObject({ status: 'failed', effect: 'none', cause: 'precondition_failed' });
    expect(readFileSync(at('image.bin'))).toEqual(Buffer.from([0xff, 0xfe, 0x00]));
    expect(called()).toBe(0);
  });

  test('a name that is taken is refused, since undoing would delete it [S2.2]', async () => {
    await stage.call('memory__create_entities', { entities: [entity('theirs')] }, { key: 'theirs' });
    const mine = { ...entity('theirs'), observations: ['mine'] };
    const answer = await stage.call('memory__create_entities', { entities: [mine] }, { key: 'mine' });
    expect(answer.task).toMatchObject({ status: 'failed', effect: 'none', cause: 'precondition_failed' });
    expect(entities('theirs')).toEqual([{ type: 'entity', ...entity('theirs') }]);
  });
});

test('a tool that nobody configured is never sent twice: after a lost answer a person is asked [M8.1] [S5.1]', async () => {
  const relation = { from: 'x', to: 'y', relationType: 'z' };
  await stage.call('memory__create_relations', { relations: [relation] }, { key: 'xyz' });
  const called = counting('memory', 'delete_relations');
  lying.memory.next('delete_relations', { kind: 'dies after the effect' });
  const answer = await stage.call('memory__delete_relations', { relations: [relation] }, { key: 'unknown' });
  expect(answer.task).toMatchObject({ status: 'needs_attention' });
  expect(graph()).not.toContainEqual({ type: 'relation', ...relation });
  const again = await stage.call('memory__delete_relations', { relations: [relation] }, { key: 'unknown' });
  expect(again.task).toMatchObject({ status: 'needs_attention', taskId: answer.task.taskId });
  expect(called()).toBe(1);
});

test('a cancelled read reaches its own server under the server’s own id [M8.3] [case 33]', async () => {
  const abort = new AbortController();
  const kept = lying.files.next('search_files', { kind: 'keeps the answer' });
  const calling = stage.call(
    'files__search_files',
    { path: root, pattern: '**/*.txt' },
    { signal: abort.signal },
  );
  await kept.met();
  const [id] = lying.files.calls('search_files').map((call) => call.id);
  const cancelled = (server: keyof typeof lying) =>
    lying[server].seen().flatMap((seen) => (seen.event === 'cancelled' ? [seen.id] : []));
  const others = () => [...cancelled('memory'), ...cancelled('everything')];
  const before = others();
  abort.abort();
  await expect(calling).rejects.toThrow();
  await threeCalls(() => stage.call('files__list_allowed_directories', {}));
  expect(cancelled('files')).toContain(id);
  expect(others()).toEqual(before);
  kept.open();
});
