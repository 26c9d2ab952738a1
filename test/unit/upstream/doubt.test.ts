/** What is done again, kept and believed of somebody else's tools once something is in doubt. */
import { describe, expect, test } from 'vitest';
import files from '../../../examples/upstream/filesystem/holdfast.config.ts';
import { ActionFailure } from '../../../src/contract/handlers.ts';
import type { ExecuteContext } from '../../../src/contract/handlers.ts';
import type {
  UpstreamDefinition,
  UpstreamToolDefinition,
} from '../../../src/contract/upstream-definition.ts';
import type { JsonObject } from '../../../src/task/json.ts';
import { compileUpstream, quarantineOf } from '../../../src/upstream/upstream-actions.ts';
import type { UpstreamReply } from '../../../src/upstream/upstream.ts';
import { BeforeInMemory } from '../../support/before-in-memory.ts';
import { answers, failsWith, Files, HandDrivenUpstream } from '../../support/hand-driven-upstream.ts';

const operationId = `op_${'c'.repeat(52)}`;
const context = (more: Partial<ExecuteContext> = {}): ExecuteContext => ({
  ...{ operationId, taskId: 'task_1', principal: { tenant: 't', subject: 'alice', roles: [] } },
  ...{ signal: new AbortController().signal, attempt: 1, isFirstSend: true, fence: '1.1.1', lease: null },
  ...{ heartbeat: () => undefined, assertOwner: () => Promise.resolve() },
  ...more,
});
const undoing = () => ({
  ...context({ operationId: 'op_rollback', isFirstSend: false }),
  originalOperationId: operationId,
});
const LOST: UpstreamReply = { kind: 'in_doubt', message: 'reset' };
const TASK = {
  kind: 'task' as const,
  task: { server: 'bank', tool: 'refund', taskId: 'r', pollIntervalMs: 1, ttlMs: null },
};

function wrap(server: HandDrivenUpstream, name: string, given: UpstreamDefinition) {
  const before = new BeforeInMemory();
  const source = { name: server.identity, definition: given, upstream: server, before };
  const entry = compileUpstream(source, server.listed).tools.find(({ tool }) => tool.name === name);
  if (entry?.action == null) throw (entry && quarantineOf(entry)) ?? new Error(`no ${name}`);
  return { before, handlers: entry.action.handlers };
}

const failureOf = (work: Promise<unknown> | undefined): Promise<unknown> =>
  Promise.resolve(work).then(
    () => 'nothing',
    (error: unknown) => error,
  );

class Bank extends HandDrivenUpstream {
  readonly paid = new Map<string, number>();
  refunds = 0;
  sees = true;
  constructor(refund: (bank: Bank) => UpstreamReply) {
    const id = { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] };
    super('bank', [
      { name: 'pay', inputSchema: id },
      { name: 'refund', inputSchema: { ...id, properties: { ...id.properties, key: { type: 'string' } } } },
      { name: 'payment', inputSchema: id },
    ]);
    this.behaviours = {
      pay: () => answers('paid'),
      refund: () => {
        this.refunds += 1;
        return refund(this);
      },
      payment: () => answers(this.sees && this.refunds > 0 ? 'refunded' : 'paid'),
    };
  }
}

const PAID: UpstreamToolDefinition = {
  verify: { none: 'told' },
  lookup: {
    ...{ tool: 'payment', args: { id: 'args.id' } },
    ...{ applied: 'answer.text == "paid"', notApplied: 'answer.text == "refunded"', conclusive: true },
  },
  rollback: { tool: 'refund', args: { id: 'args.id' } },
};
const input = { id: 'p1' } as never;
const result = { content: [] } as never;

function paying(refund: (bank: Bank) => UpstreamReply, definition: UpstreamToolDefinition = PAID) {
  const bank = new Bank(refund);
  const { handlers } = wrap(bank, 'pay', {
    ...{ command: 'x', safe: ['payment'], tools: { pay: definition } },
  });
  const undo = (signal = undoing().signal) =>
    failureOf(handlers.rollback?.(input, result, { ...undoing(), signal }));
  return { bank, undo };
}

describe('undoing whose answer is lost', () => {
  test('[S6.2] what a lookup tells to be undone is not undone again', async () => {
    const { bank, undo } = paying(() => answers('refunded'));
    bank.refunds = 1;
    expect(await undo()).toBe('nothing');
    expect(bank.refunds).toBe(1);
  });

  test('[S6.2] seen when read back, it is undone', async () => {
    const { bank, undo } = paying(() => LOST);
    expect(await undo()).toBe('nothing');
    expect(bank.refunds).toBe(1);
  });

  test.each([
    ['lost', LOST],
    ['an error', failsWith('half done')],
    ['a task that fails', TASK],
  ] as [string, UpstreamReply][])(
    '[S6.2] [S6.5] not seen when read back, a person is asked: %s',
    async (_name, reply) => {
      for (const more of [
        {},
        {
          verifyRollback: {
            ...{ tool: 'payment', args: { id: 'args.id' }, verified: 'answer.text == "refunded"' },
          },
        },
      ]) {
        const { bank, undo } = paying(() => reply, { ...PAID, ...more });
        bank.sees = false;
        bank.remote.status = () => Promise.resolve({ kind: 'failed', message: 'no' });
        expect(await undo()).toMatchObject({ failure: { kind: 'permanent' } });
        expect(bank.refunds).toBe(1);
      }
    },
  );

  test('[M8.4] [S6.2] undoing that the server makes a task of is waited for, and so is what it is told by', async () => {
    const { bank, undo } = paying(() => TASK);
    let hasEnded = false;
    bank.behaviours['payment'] = () => ({ ...TASK, task: { ...TASK.task, taskId: 'read' } });
    bank.remote.status = ({ taskId }) => {
      const text = hasEnded ? 'refunded' : 'paid';
      if (taskId === 'r') hasEnded = true;
      return Promise.resolve({ kind: 'completed', result: { content: [{ type: 'text', text }] } });
    };
    expect(await undo()).toBe('nothing');
    expect(await undo()).toBe('nothing');
    expect(bank.refunds).toBe(1);
  });

  test('[M8.4] what is asked and given up is cancelled at its server; undoing that has begun there goes on', async () => {
    const { bank, undo } = paying(() => TASK);
    const [leaving, cancelled] = [new AbortController(), [] as string[]];
    bank.remote.cancel = ({ taskId }) => Promise.resolve(void cancelled.push(taskId));
    bank.remote.status = () => {
      leaving.abort();
      return Promise.resolve({ kind: 'working' });
    };
    expect(await undo(leaving.signal)).toMatchObject({ failure: { kind: 'permanent' } });
    expect(cancelled).toEqual([]);
    bank.behaviours['payment'] = () => TASK;
    expect(await undo(AbortSignal.abort())).toMatchObject({ name: 'NotTold' });
    expect(cancelled).toEqual([]);
    const again = new AbortController();
    bank.remote.status = () => {
      again.abort();
      return Promise.resolve({ kind: 'working' });
    };
    expect(await undo(again.signal)).toMatchObject({ name: 'NotTold' });
    expect(cancelled).toEqual(['r']);
  });

  test('[S6.2] of two steps the first is not sent again, and counts for no more than it is', async () => {
    const step = (tool: string) => ({ tool, args: { id: 'args.id' } });
    const rollback = { steps: [step('refund'), step('pay')] };
    const { bank, undo } = paying(() => answers('ok'), { ...PAID, rollback });
    bank.behaviours['pay'] = () => ({ kind: 'not_sent', message: 'no connection' });
    expect(await undo()).toMatchObject({ failure: { kind: 'permanent' } });
    expect(bank.refunds).toBe(1);
    // Refunded, as a lookup tells: the second step is still to be taken.
    bank.behaviours['pay'] = () => answers('ok');
    await undo();
    expect(bank.sent('pay').length).toBe(2);
  });

  test('[S6.2] one that is told the id of the undoing may be sent again', async () => {
    const args = { id: 'args.id', key: 'rollbackId' };
    const { bank, undo } = paying(() => LOST, { ...PAID, rollback: { tool: 'refund', args } });
    bank.sees = false;
    const error = await undo();
    expect(error).toBeInstanceOf(Error);
    expect(error).not.toBeInstanceOf(ActionFailure);
  });
});

const READ = { tool: 'read_file', args: { path: 'args.path' } };
const WRITE: UpstreamToolDefinition = {
  before: { old: READ },
  verify: { ...READ, verified: '!answer.isError && answer.text == args.content' },
  rollback: { tool: 'write_file', args: { path: 'args.path', content: 'before.old.text' } },
  verifyRollback: { ...READ, verified: 'answer.isError == before.old.isError' },
};
const file = { path: '/a', content: 'new' } as never;

function writing(definition: UpstreamToolDefinition = WRITE) {
  const server = new Files();
  const { before, handlers } = wrap(server, 'write_file', {
    ...{ command: 'x', safe: ['read_file'], tools: { write_file: definition } },
  });
  const old = () => (before.kept.get(operationId)?.['old'] as JsonObject | undefined)?.['text'];
  const write = (more: Partial<ExecuteContext> = {}) => failureOf(handlers.execute(file, context(more)));
  return { server, before, handlers, old, write };
}

describe('what was read before', () => {
  test('[M8.1] stands while an earlier attempt is in doubt, whatever a later one proves of itself', async () => {
    for (const reply of [
      { kind: 'not_sent', message: 'no connection' },
      { kind: 'refused', code: -32_601, message: 'no' },
    ] as UpstreamReply[]) {
      const { server, old, write } = writing();
      server.files.set('/a', 'old');
      server.behaviours['write_file'] = () => {
        server.files.set('/a', 'new');
        return LOST;
      };
      await write();
      server.behaviours['write_file'] = () => reply;
      await write({ attempt: 2, isFirstSend: false });
      expect(old()).toBe('old');
    }
  });

  test('[M8.1] is read anew where nothing can have been applied', async () => {
    const { server, old, write } = writing();
    server.files.set('/a', 'last week');
    await write();
    server.files.set('/a', 'today');
    await write({ fence: '2.1.1' });
    expect(old()).toBe('today');
  });

  test('[S2.5] is forgotten by nobody who was overtaken', async () => {
    const { server, old, write } = writing();
    server.files.set('/a', 'old');
    await write();
    const assertOwner = () => Promise.reject(new Error('overtaken'));
    await write({ assertOwner });
    expect(old()).toBe('old');
    // Overtaken while the server answers.
    server.files.set('/a', 'old');
    let isOurs = true;
    server.behaviours['write_file'] = () => {
      isOurs = false;
      return { kind: 'not_sent', message: 'no connection' };
    };
    await write({
      assertOwner: () => (isOurs ? Promise.resolve() : Promise.reject(new Error('overtaken'))),
    });
    expect(old()).toBe('old');
  });

  test('[M8.1] a precondition that can not be told after it was kept sends nothing, and says so', async () => {
    const { server, write } = writing({ ...WRITE, precondition: { ...READ, holds: 'answer.text == "old"' } });
    const texts = [answers('old'), failsWith('EIO')];
    server.behaviours['read_file'] = () => texts.shift() ?? failsWith('EIO');
    expect(await write()).toMatchObject({ failure: { kind: 'notApplied' } });
    expect(server.sent('write_file')).toEqual([]);
  });
});

describe('a read that failed', () => {
  test('[M8.1] becomes no argument where nobody looks at that it failed', async () => {
    const { server, before, handlers } = writing();
    before.kept.set(operationId, { old: { text: 'EIO', isError: true, content: [] } });
    server.behaviours['read_file'] = () => answers('other');
    expect(await failureOf(handlers.rollback?.(file, result, undoing()))).toMatchObject({ name: 'NotTold' });
    expect(server.sent('write_file')).toEqual([]);
  });

  test('[M8.1] becomes one where the way looks at it, or the argument does', async () => {
    for (const rollback of [
      { ways: [{ when: 'before.old.isError', tool: 'write_file', args: textOf('before.old.text') }] },
      { tool: 'write_file', args: textOf('before.old.isError ? "none" : before.old.text') },
    ] as NonNullable<UpstreamToolDefinition['rollback']>[]) {
      const { server, before, handlers } = writing({ ...WRITE, rollback });
      before.kept.set(operationId, { old: { text: 'ENOENT', isError: true, content: [] } });
      server.behaviours['read_file'] = () => answers('other');
      expect(await failureOf(handlers.rollback?.(file, result, undoing()))).toBe('nothing');
      expect(server.sent('write_file')).toHaveLength(1);
    }
  });
});
const textOf = (content: string) => ({ path: 'args.path', content });

test('[M8.1] the example of files: what the server refuses has failed, and nothing was done', async () => {
  const path = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] };
  const two = { source: { type: 'string' }, destination: { type: 'string' } };
  const server = new HandDrivenUpstream('files', [
    ...['create_directory', 'get_file_info', 'list_directory', 'read_text_file'].map((name) => ({
      ...{ name, inputSchema: path },
    })),
    { name: 'move_file', inputSchema: { type: 'object', properties: two } },
  ]);
  const denied = failsWith('Access denied - path outside allowed directories');
  server.behaviours = { get_file_info: () => denied, create_directory: () => denied };
  const definition = files.upstreams?.['files'] as UpstreamDefinition;
  const { handlers } = wrap(server, 'create_directory', definition);
  const outside = { path: '/etc/x' } as never;
  const refused = { failure: { kind: 'permanent' } };
  expect(await failureOf(handlers.execute(outside, context()))).toMatchObject(refused);
  for (const [words, expected] of [
    ['Input validation error: Invalid arguments', refused],
    ['Output validation error: Invalid structured content', { name: 'Error' }],
  ] as const) {
    server.behaviours['create_directory'] = () => failsWith(`MCP error -32602: ${words}`);
    expect(await failureOf(handlers.execute(outside, context()))).toMatchObject(expected);
  }
});
