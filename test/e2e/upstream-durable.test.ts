/** Actions made of another server's tools, over the real connection: what a lost answer and a cancel lead to. */
import { afterEach, describe, expect, test } from 'vitest';
import { classifyFailure } from '../../src/contract/classify-failure.ts';
import type { ExecuteContext } from '../../src/contract/handlers.ts';
import type { Json, JsonObject } from '../../src/task/json.ts';
import { compileUpstream } from '../../src/upstream/upstream-actions.ts';
import { BeforeInMemory } from '../support/before-in-memory.ts';
import { connectionStage, threeCalls } from '../support/upstream-stage.ts';
import type { ConnectionStage } from '../support/upstream-stage.ts';

const NEVER = new AbortController().signal;
const context = (signal: AbortSignal = NEVER): ExecuteContext => ({
  ...{
    operationId: `op_${'b'.repeat(52)}`,
    taskId: 'task_1',
    signal,
    lease: null,
    attempt: 1,
    isFirstSend: true,
    fence: '1.1.1',
  },
  principal: { tenant: 't', subject: 'alice', roles: [] },
  heartbeat: () => undefined,
  assertOwner: () => Promise.resolve(),
});

const stages: ConnectionStage[] = [];
afterEach(async () => {
  for (const each of stages.splice(0)) await each.close();
});

async function stageOf(transport: 'stdio' | 'http') {
  const stage = await connectionStage(transport, { era: 'modern' });
  stages.push(stage);
  const definition = {
    command: 'x',
    safe: ['count'],
    tools: {
      apply_and_die: {
        lookup: {
          tool: 'count',
          args: { key: 'args.key' },
          applied: 'answer.structured.count == 1.0',
          notApplied: 'answer.structured.count == 0.0',
        },
      },
    },
  };
  const source = { name: 'another', definition, upstream: stage.upstream, before: new BeforeInMemory() };
  const { tools } = compileUpstream(source, await stage.upstream.tools(NEVER));
  const handlersOf = (name: string) => {
    const entry = tools.find(({ tool }) => tool.name === name);
    if (!entry?.action) throw new Error(`${name} is no action`);
    return entry.action.handlers;
  };
  const run = (name: string, args: JsonObject, signal?: AbortSignal): Promise<Json> =>
    Promise.resolve(handlersOf(name).execute(args as never, context(signal))) as Promise<Json>;
  return { stage, handlersOf, run };
}

describe.each(['stdio', 'http'] as const)('over %s', (transport) => {
  test('[M8.3] a server that dies after the effect is replaced, and asked: applied, one effect', async () => {
    const { stage, handlersOf, run } = await stageOf(transport);
    const error: unknown = await run('apply_and_die', { key: 'k' }).catch((thrown: unknown) => thrown);
    expect(classifyFailure(error)).toMatchObject({ kind: 'unknown' });
    const found = await handlersOf('apply_and_die').lookup?.({ ...context(), input: { key: 'k' } as never });
    expect(found).toMatchObject({ kind: 'applied' });
    expect(stage.effects('k')).toBe(1);
  });

  test('[M8.3] [case 33] an attempt that is cancelled ends its own request at its own server', async () => {
    const [first, second] = [await stageOf(transport), await stageOf(transport)];
    const leaving = new AbortController();
    const left = first.run('hangs', {}, leaving.signal).catch((error: unknown) => error);
    const others = [first.run('hangs', {}), second.run('hangs', {})];
    for (const other of others) other.catch(() => undefined);
    const callsOf = ({ stage }: typeof first) =>
      stage.received.filter(({ message }) => message.params?.name === 'hangs');
    const cancelsOf = ({ stage }: typeof first) =>
      stage.received.flatMap(({ message, closed }) =>
        message.method === 'notifications/cancelled' ? [message.params?.requestId] : (closed ?? []),
      );
    await first.stage.until('both calls', () => callsOf(first).length === 2);
    await second.stage.until('the other call', () => callsOf(second).length === 1);
    leaving.abort('cancelled');
    expect(classifyFailure(await left)).toMatchObject({ kind: 'unknown' });
    await threeCalls(() => first.stage.upstream.call({ tool: 'echo', args: {}, signal: NEVER }));
    expect(cancelsOf(first)).toHaveLength(1);
    expect(callsOf(first).map(({ message }) => message.id)).toContain(cancelsOf(first)[0]);
    expect(cancelsOf(second)).toEqual([]);
  });
});
