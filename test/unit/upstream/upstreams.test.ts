import { expect, test } from 'vitest';
import type { UpstreamDefinition } from '../../../src/contract/upstream-definition.ts';
import { UpstreamServer } from '../../../src/upstream/upstream-server.ts';
import type { KnownList } from '../../../src/upstream/upstream-server.ts';
import { Upstreams } from '../../../src/upstream/upstreams.ts';
import type { UpstreamTool } from '../../../src/upstream/upstream.ts';
import { BeforeInMemory } from '../../support/before-in-memory.ts';
import { fileTools, HandDrivenUpstream } from '../../support/hand-driven-upstream.ts';

const quiet = { warn: () => undefined, info: () => undefined };
const named = (...names: string[]): UpstreamTool[] =>
  names.map((name) => ({ name, inputSchema: { type: 'object' } }));

/** Servers that are known by their lists alone. */
async function known(
  servers: Record<string, { definition?: UpstreamDefinition; tools: UpstreamTool[] }>,
  taken: string[] = [],
) {
  const lists = new Map<string, KnownList>();
  let upstreams: Upstreams | null = null;
  const made = Object.entries(servers).map(([name, { definition = {}, tools }]) => {
    lists.set(definition.identity ?? name, { tools, gone: [], seenAt: 1 });
    return new UpstreamServer({
      ...{ name, definition: { command: 'x', ...definition }, open: null, log: quiet },
      lists: {
        recall: (identity) => Promise.resolve(lists.get(identity) ?? null),
        keep: () => Promise.reject(new Error('nothing is kept here')),
      },
      before: new BeforeInMemory(),
      changed: () => upstreams?.gather(),
    });
  });
  for (const server of made) await server.recall();
  upstreams = new Upstreams({ servers: made, taken, hasKey: false });
  return {
    upstreams,
    shown: () => upstreams.offered.map(({ displayName }) => displayName),
    problems: () => upstreams.problems.map(({ server, tool }) => [server, tool]),
    async becomes(name: string, tools: UpstreamTool[], gone: UpstreamTool[] = []) {
      const seenAt = (lists.get(name)?.seenAt ?? 0) + 1;
      lists.set(name, { tools, gone, seenAt });
      for (const server of made) await server.recall();
    },
  };
}

test('[M8.2] what a client is shown names the tool that it is shown for, also where another action is named so', async () => {
  const { upstreams, shown, problems } = await known({
    a: { tools: named('x', 'y'), definition: { tools: { x: { as: 'b__x' } } } },
    b: { tools: named('x') },
  });
  expect(shown()).toEqual(['a__y', 'b__x']);
  expect(upstreams.actionOf('b__x')).toBe('b__x');
  expect(problems()).toEqual([['a', 'x']]);
  // Its tasks run on.
  expect(upstreams.find('a__x')).toBeDefined();
});

test('[M8.2] by its shown name a tool is found under the ledger’s', async () => {
  const { upstreams } = await known({
    a: { tools: named('x'), definition: { identity: 'bank', tools: { x: { as: 'pay' } } } },
  });
  expect(upstreams.actionOf('pay')).toBe('bank__x');
  expect(upstreams.actionOf('bank__x')).toBe('bank__x');
});

test('[M8.2] two servers that are each shown under the other’s identity name nothing by it', async () => {
  const { shown, problems } = await known({
    a: { tools: named('x'), definition: { identity: 'b' } },
    b: { tools: named('x'), definition: { identity: 'a' } },
  });
  expect(shown()).toEqual([]);
  expect(problems()).toEqual([
    ['a', 'x'],
    ['b', 'x'],
  ]);
});

test('[M8.2] a shown name is neither an own action’s nor another shown one', async () => {
  const { shown, problems } = await known(
    {
      a: { tools: named('x', 'y'), definition: { tools: { x: { as: 'pay' }, y: { as: 'send' } } } },
      b: { tools: named('z'), definition: { tools: { z: { as: 'send' } } } },
    },
    ['pay'],
  );
  expect(shown()).toEqual(['send']);
  expect(problems()).toEqual([
    ['a', 'x'],
    ['b', 'z'],
  ]);
});

test('[M8.5] a tool that fits its configuration no longer is not offered, and its tasks run on', async () => {
  const definition: UpstreamDefinition = {
    tools: { write_file: { verify: { tool: 'read_file', args: { path: 'args.path' }, verified: 'true' } } },
  };
  const { upstreams, shown, problems, becomes } = await known({ files: { tools: fileTools(), definition } });
  const before = upstreams.find('files__write_file');
  expect(before).toBeDefined();
  const changed = fileTools().map((tool) =>
    tool.name === 'write_file'
      ? { ...tool, inputSchema: { type: 'object', properties: { where: { type: 'string' } } } }
      : tool,
  );
  await becomes('files', changed);
  expect(shown()).not.toContain('files__write_file');
  expect(problems()).toEqual([['files', 'write_file']]);
  expect(upstreams.find('files__write_file')).toBe(before);
  await becomes('files', [...changed, ...named('more')]);
  expect(upstreams.find('files__write_file')).toBe(before);
  await becomes('files', fileTools());
  expect(shown()).toContain('files__write_file');
});

test.each([
  ['it', fileTools()],
  ['a tool that it asks', fileTools().filter(({ name }) => name === 'read_file')],
])(
  '[M8.5] a process that begins after %s changed so that it no longer fits knows it as it was',
  async (_what, gone) => {
    const definition: UpstreamDefinition = {
      tools: { write_file: { verify: { tool: 'read_file', args: { path: 'args.path' }, verified: 'true' } } },
    };
    const hasChanged = (name: string) => gone.some((tool) => tool.name === name);
    const listed = fileTools().map((tool) =>
      hasChanged(tool.name) ? { ...tool, inputSchema: { type: 'object', properties: {} } } : tool,
    );
    const { upstreams, shown, problems, becomes } = await known({ files: { tools: [], definition } });
    await becomes('files', listed, gone);
    expect(shown()).not.toContain('files__write_file');
    expect(problems()).toEqual([['files', 'write_file']]);
    expect(upstreams.find('files__write_file')?.handlers.verify).toBeDefined();
  },
);

/** A server whose list is read, and whose timers are run by hand. */
async function listening() {
  const line = new HandDrivenUpstream('a', named('x'));
  const timers: { delayMs: number; work: () => void; isCancelled: boolean }[] = [];
  let tell = (): void => undefined;
  let kept = 0;
  let heard = (): void => undefined;
  const server = new UpstreamServer({
    ...{ name: 'a', definition: { command: 'x' }, log: quiet, before: new BeforeInMemory() },
    open: (listChanged) => {
      tell = listChanged;
      return line;
    },
    lists: {
      recall: () => Promise.resolve(null),
      keep: (_identity, tools) => Promise.resolve({ tools, gone: [], seenAt: (kept += 1) }),
    },
    changed: () => heard(),
    after: (delayMs, work) => {
      const timer = { delayMs, work, isCancelled: false };
      timers.push(timer);
      return { cancel: () => void (timer.isCancelled = true) };
    },
  });
  await server.start(new AbortController().signal);
  const due = () => timers.filter(({ isCancelled }) => !isCancelled);
  return {
    ...{ line, server, tell: () => tell(), due: () => due().map(({ delayMs }) => delayMs) },
    /** Until it has offered others. */
    async look() {
      const changed = new Promise<void>((resolve) => (heard = resolve));
      const [next] = due().splice(-1);
      if (next === undefined) throw new Error('nothing is due');
      next.isCancelled = true;
      next.work();
      await changed;
    },
    names: () => server.compiled?.tools.map(({ tool }) => tool.name),
  };
}

test('[M8.5] a list is read again after a while, and at once where its server says that it changed', async () => {
  const { line, due, look, names, tell, server } = await listening();
  expect(due()).toEqual([300_000]);
  line.listed = named('x', 'y');
  await look();
  expect(names()).toEqual(['x', 'y']);
  tell();
  tell();
  expect(due()).toEqual([1_000]);
  line.listed = named('z');
  await look();
  expect(names()).toEqual(['z']);
  await server.close();
  tell();
  expect(due()).toEqual([]);
});
