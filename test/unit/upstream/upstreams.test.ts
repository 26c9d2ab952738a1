import { expect, test } from 'vitest';
import type { UpstreamDefinition } from '../../../src/contract/upstream-definition.ts';
import { UpstreamServer } from '../../../src/upstream/upstream-server.ts';
import type { KnownList } from '../../../src/upstream/upstream-server.ts';
import { Upstreams } from '../../../src/upstream/upstreams.ts';
import type { UpstreamTool } from '../../../src/upstream/upstream.ts';
import { BeforeInMemory } from '../../support/before-in-memory.ts';
import { fileTools } from '../../support/hand-driven-upstream.ts';

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
    async becomes(name: string, tools: UpstreamTool[]) {
      const seenAt = (lists.get(name)?.seenAt ?? 0) + 1;
      lists.set(name, { tools, gone: [], seenAt });
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
