/** The tools of configured servers as actions, put together in a configuration file of its own: connected while it is loaded. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Action } from '../../src/index.ts';
import type { UpstreamDefinition, UpstreamSetting } from '../../src/contract/upstream-definition.ts';
import type { JsonObject } from '../../src/task/json.ts';
import type { BeforeStore } from '../../src/upstream/before-store.ts';
import { openUpstream } from '../../src/upstream/connection/open-upstream.ts';
import { actionsOf, compileUpstream } from '../../src/upstream/upstream-actions.ts';

const LIST_MS = 60_000;
const log = {
  info: () => undefined,
  warn: (fields: object, message: string) => console.error(message, JSON.stringify(fields)),
};

/** Those that run tasks stay connected; other commands only read the list. */
const staysConnected = process.argv.some((word) => word === 'worker' || word === 'gateway');

const valueOf = (setting: UpstreamSetting): string =>
  typeof setting === 'string' ? setting : `${setting.prefix ?? ''}${process.env[setting.env] ?? ''}`;

export async function actionsBehind(
  upstreams: Record<string, UpstreamDefinition>,
  folder: string,
): Promise<Action[]> {
  const before = beforeInFolder(join(folder, 'before'));
  const compiled = Object.entries(upstreams).map(async ([name, definition]) => {
    const { url, command = '', args = [], env = {} } = definition;
    const settings = Object.entries(env).map(([key, value]) => [key, valueOf(value)]);
    const upstream = openUpstream({
      identity: name,
      address: url
        ? { url }
        : { command, args: args.map(valueOf), env: Object.fromEntries(settings) as Record<string, string> },
      info: { name: 'holdfast', version: '0' },
      log,
    });
    const listed = await upstream.tools(AbortSignal.timeout(LIST_MS));
    if (!staysConnected) await upstream.close();
    const server = compileUpstream({ name, definition, upstream, before }, listed);
    const defects = server.tools.flatMap(({ notes }) => notes.defects);
    if (defects.length + server.problems.length > 0)
      throw new Error(JSON.stringify([...defects, ...server.problems]));
    return actionsOf(server);
  });
  return (await Promise.all(compiled)).flat();
}

/** One file for each operation: the first one stands, over every process. */
function beforeInFolder(folder: string): BeforeStore {
  mkdirSync(folder, { recursive: true });
  const recall = (id: string): JsonObject | null =>
    existsSync(join(folder, id)) ? (JSON.parse(readFileSync(join(folder, id), 'utf8')) as JsonObject) : null;
  return {
    keep: async (id, _tenant, before) => {
      if (recall(id) === null) writeFileSync(join(folder, id), JSON.stringify(before));
      return recall(id) ?? before;
    },
    recall: async (id) => recall(id),
    forget: async (id) => rmSync(join(folder, id), { force: true }),
  };
}
