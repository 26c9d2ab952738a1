import { describe, expect, test } from 'vitest';
import { validateArguments } from '../../../src/contract/arguments.ts';
import { ActionFailure } from '../../../src/contract/handlers.ts';
import type { ExecuteContext } from '../../../src/contract/handlers.ts';
import { planOperation } from '../../../src/contract/plan-operation.ts';
import type {
  UpstreamDefinition,
  UpstreamToolDefinition,
} from '../../../src/contract/upstream-definition.ts';
import type { Json, JsonObject } from '../../../src/task/json.ts';
import { noteText } from '../../../src/upstream/action/tool-notes.ts';
import { compileUpstream, quarantineOf } from '../../../src/upstream/upstream-actions.ts';
import type { UpstreamTool } from '../../../src/upstream/upstream.ts';
import { BeforeInMemory } from '../../support/before-in-memory.ts';
import { answers, failsWith, Files, HandDrivenUpstream } from '../../support/hand-driven-upstream.ts';

const principal = { tenant: 't', subject: 'alice', roles: [] };
const operationId = `op_${'b'.repeat(52)}`;

function context(more: Partial<ExecuteContext> = {}): ExecuteContext {
  return {
    ...{ operationId, taskId: 'task_1', principal, signal: new AbortController().signal },
    ...{
      lease: null,
      attempt: 1,
      isFirstSend: true,
      fence: '1.1.1',
      heartbeat: () => undefined,
      assertOwner: () => Promise.resolve(),
    },
    ...more,
  };
}
const undoing = () => ({ ...context({ operationId: 'op_rollback' }), originalOperationId: operationId });

const WRITE: UpstreamToolDefinition = {
  before: { old: { tool: 'read_file', args: { path: 'args.path' } } },
  precondition: { holds: '!before.old.isError || before.old.text.startsWith("ENOENT")' },
  verify: {
    tool: 'read_file',
    args: { path: 'args.path' },
    verified: '!answer.isError && answer.text == args.content',
  },
  lookup: {
    tool: 'read_file',
    args: { path: 'args.path' },
    applied: '!answer.isError && answer.text == args.content',
    notApplied: 'answer.isError == before.old.isError && answer.text == before.old.text',
  },
  rollback: {
    ways: [
      {
        when: '!before.old.isError',
        tool: 'write_file',
        args: { path: 'args.path', content: 'before.old.text' },
      },
      {
        tool: 'move_file',
        args: { source: 'args.path', destination: 'args.path + "." + rollbackId' },
        remains: '"the new content, under " + args.path + "." + rollbackId',
      },
    ],
  },
  verifyRollback: {
    tool: 'read_file',
    args: { path: 'args.path' },
    verified: 'answer.isError == before.old.isError && answer.text == before.old.text',
  },
};

function compiled(server: HandDrivenUpstream, definition: UpstreamDefinition, before = new BeforeInMemory()) {
  const source = {
    name: server.identity,
    definition: definition.url === undefined ? { command: 'x', ...definition } : definition,
    upstream: server,
    before,
  };
  const found = compileUpstream(source, server.listed);
  const tool = (name: string) => {
    const entry = found.tools.find((one) => one.tool.name === name);
    if (entry === undefined) throw new Error(`no ${name}`);
    return entry;
  };
  const action = (name: string) => {
    const entry = tool(name);
    if (entry.action === null) throw quarantineOf(entry) as Error;
    return entry.action;
  };
  return { ...found, tool, action, before };
}

function writing(definition: UpstreamToolDefinition = WRITE) {
  const server = new Files();
  const { action, before } = compiled(server, { safe: ['read_file'], tools: { write_file: definition } });
  const { contract, handlers } = action('write_file');
  const input = { path: '/a', content: 'new' } as never;
  return { server, before, contract, handlers, input };
}

const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => 'nothing',
    (error: unknown) => error,
  );

describe('a file written by somebody else’s tool', () => {
  test('[M8.1] is read before, written once, read back, and put back as it was', async () => {
    const { server, handlers, input } = writing();
    server.files.set('/a', 'old');
    expect(await handlers.precondition?.(input, context())).toEqual({ kind: 'holds' });
    const result = (await handlers.execute(input, context())) as Json;
    expect(server.files.get('/a')).toBe('new');
    expect(await handlers.verify?.(input, result as never, context())).toEqual({ kind: 'verified' });
    expect(await handlers.rollback?.(input, result as never, undoing())).toEqual({});
    expect(server.files.get('/a')).toBe('old');
    expect(await handlers.verifyRollback?.(input, result as never, undoing())).toEqual({ kind: 'verified' });
  });

  test('[M8.1] one that was not there is moved away, and what remains is named', async () => {
    const { server, handlers, input } = writing();
    const result = await handlers.execute(input, context());
    expect(await handlers.rollback?.(input, result as never, undoing())).toEqual({
      remains: 'the new content, under /a.op_rollback',
    });
    expect([...server.files.keys()]).toEqual(['/a.op_rollback']);
  });

  test('[M8.1] what is undone already is not undone again', async () => {
    const { server, handlers, input } = writing();
    const result = await handlers.execute(input, context());
    await handlers.rollback?.(input, result as never, undoing());
    const sent = server.sent('move_file').length;
    expect(await handlers.rollback?.(input, result as never, undoing())).toEqual({});
    expect(server.sent('move_file')).toHaveLength(sent);
  });

  test('[M8.1] what was read before is durable before the effect is sent, and the first reading stands', async () => {
    const { server, before, handlers, input } = writing();
    server.files.set('/a', 'old');
    const write = server.behaviours['write_file'];
    let keptWhenSent: unknown;
    server.behaviours['write_file'] = (args, call) => {
      keptWhenSent = structuredClone(before.kept.get(operationId));
      return write?.(args, call) ?? failsWith('');
    };
    await handlers.execute(input, context());
    await handlers.execute(input, context({ attempt: 2, isFirstSend: false }));
    expect(keptWhenSent).toMatchObject({ old: { text: 'old' } });
    expect(before.kept.get(operationId)).toMatchObject({ old: { text: 'old' } });
  });

  test('[M8.1] what could not be read before, or fails its condition, sends nothing', async () => {
    const { server, before, handlers, input } = writing();
    server.behaviours['read_file'] = () => failsWith('EACCES: not allowed');
    expect(await handlers.precondition?.(input, context())).toMatchObject({ kind: 'fails' });
    expect(await failureOf(handlers.execute(input, context()))).toMatchObject({
      failure: { kind: 'notApplied' },
    });
    server.behaviours['read_file'] = () => ({ kind: 'in_doubt', message: 'gone' });
    expect(await failureOf(handlers.execute(input, context()))).toMatchObject({
      failure: { kind: 'notApplied' },
    });
    expect(server.sent('write_file')).toEqual([]);
    expect(before.kept.size).toBe(0);
  });

  test('[M8.1] a tool that answers and does nothing is found out', async () => {
    const { server, handlers, input } = writing();
    server.behaviours['write_file'] = () => answers('Successfully wrote');
    const result = await handlers.execute(input, context());
    expect(await handlers.verify?.(input, result as never, context())).toMatchObject({ kind: 'mismatch' });
  });

  test('[S2.4] a lookup tells what is there, what is not, and what it can not tell', async () => {
    const { server, handlers, input } = writing();
    server.files.set('/a', 'old');
    server.behaviours['write_file'] = () => ({ kind: 'in_doubt', message: 'connection lost' });
    const error = await failureOf(handlers.execute(input, context()));
    expect(error).not.toBeInstanceOf(ActionFailure);
    const ask = () => handlers.lookup?.({ ...context(), input });
    expect(await ask()).toEqual({ kind: 'not_applied' });
    server.files.set('/a', 'half');
    expect(await ask()).toMatchObject({ kind: 'unknown' });
    server.files.set('/a', 'new');
    expect(await ask()).toMatchObject({ kind: 'applied' });
  });
});

describe('what an answer proves (S5)', () => {
  const cases: [string, () => ReturnType<typeof answers>, object | 'unknown'][] = [
    ['nothing was sent', () => ({ kind: 'not_sent', message: 'no connection' }), { kind: 'notApplied' }],
    [
      'later',
      () => ({ kind: 'not_sent', message: 'busy', retryAfterMs: 500 }),
      { kind: 'rateLimited', retryAfterMs: 500 },
    ],
    ['an unknown method', () => ({ kind: 'refused', code: -32_601, message: 'no' }), { kind: 'permanent' }],
    ['invalid params, with a lookup', () => ({ kind: 'refused', code: -32_602, message: 'no' }), 'unknown'],
    ['an internal error', () => ({ kind: 'refused', code: -32_603, message: 'no' }), 'unknown'],
    ['no answer', () => ({ kind: 'in_doubt', message: 'reset' }), 'unknown'],
    ['an answer that says it failed', () => failsWith('disk full'), 'unknown'],
    ['one that proves it was refused', () => failsWith('Access denied: /a'), { kind: 'permanent' }],
  ];
  test.each(cases)('[M8.1] %s', async (_name, reply, expected) => {
    const { server, before, handlers, input } = writing({
      ...WRITE,
      refused: 'result.text.startsWith("Access denied") && result.isError',
    });
    server.behaviours['write_file'] = reply;
    const error = await failureOf(handlers.execute(input, context()));
    if (expected === 'unknown') {
      expect(error).toBeInstanceOf(Error);
      expect(error).not.toBeInstanceOf(ActionFailure);
      expect(before.kept.size).toBe(1);
    } else {
      expect(error).toMatchObject({ failure: expected });
      expect(before.kept.size).toBe(0);
    }
  });

  test.each([
    [undefined, { failure: { kind: 'permanent' } }],
    [{ type: 'object' }, { name: 'Error' }],
  ])(
    '[S5] invalid params, without a lookup and with the output schema %j',
    async (outputSchema, expected) => {
      const server = new HandDrivenUpstream('odd', [
        { name: 'act', inputSchema: { type: 'object' }, ...(outputSchema && { outputSchema }) },
      ]);
      server.behaviours['act'] = () => ({ kind: 'refused', code: -32_602, message: 'no' });
      const { handlers } = compiled(server, {}).action('act');
      expect(await failureOf(handlers.execute({} as never, context()) as Promise<unknown>)).toMatchObject(
        expected,
      );
    },
  );

  test('an answer with a task is handed on as one', async () => {
    const { server, handlers, input } = writing();
    const task = { server: 'files', tool: 'write_file', taskId: 'r1', pollIntervalMs: 500, ttlMs: null };
    server.behaviours['write_file'] = () => ({ kind: 'task', task });
    const { remoteTaskIn } = await import('../../../src/contract/handlers.ts');
    expect(remoteTaskIn(await handlers.execute(input, context()))).toEqual(task);
  });
});

describe('where it can not be told', () => {
  const blind: UpstreamToolDefinition = {
    ...WRITE,
    verify: { tool: 'read_file', args: { path: 'args.path' }, verified: 'answer.text == args.content' },
    lookup: {
      tool: 'read_file',
      args: { path: 'args.path' },
      applied: 'answer.text == args.content',
      notApplied: 'answer.text != args.content',
    },
  };

  test('[M8.1] an answer that says it failed proves nothing where the condition does not look at that', async () => {
    const { server, handlers, input } = writing(blind);
    server.behaviours['read_file'] = () => failsWith('new');
    expect(await handlers.verify?.(input, { content: [] }, context())).toMatchObject({
      kind: 'not_yet',
    });
    expect(await handlers.lookup?.({ ...context(), input })).toMatchObject({ kind: 'unknown' });
  });

  test('[M8.1] a condition that has no value verifies nothing', async () => {
    const { handlers, input } = writing({
      ...WRITE,
      verify: { tool: 'read_file', args: { path: 'args.path' }, verified: 'answer.structured.size == 3.0' },
    });
    expect(await handlers.verify?.(input, { content: [] }, context())).toMatchObject({
      kind: 'not_yet',
    });
  });

  test('[M8.1] an approval whose condition can not be judged asks a person', () => {
    const { action } = compiled(new Files(), {
      tools: { write_file: { approval: { when: 'json(args.content).amount > 100.0', roles: ['boss'] } } },
    });
    const { contract } = action('write_file');
    const asks = (content: string) => contract.approval?.({ path: '/a', content });
    expect(asks('{"amount":5}')).toBe(false);
    expect(asks('{"amount":500}')).toEqual({ roles: ['boss'] });
    expect(asks('{}')).toEqual({ roles: ['boss'] });
    expect(asks('not json')).toEqual({ roles: ['boss'] });
  });
});

describe('the contract', () => {
  test('[M8.1] what is not configured is unsafe, and a person undoes it', () => {
    const { action } = compiled(new Files(), {});
    expect(action('write_file').contract).toMatchObject({
      effect: 'unsafe',
      rollback: { kind: 'outOfBand' },
      lookup: null,
    });
    const { plan } = planOperation(action('write_file'), {
      args: { path: '/a', content: 'b' },
      principal,
      key: 'k',
    });
    expect(plan).toMatchObject({
      action: 'files__write_file',
      effect: 'unsafe',
      approval: null,
      handlers: { verify: false, lookup: 'none' },
    });
  });

  test('[M1.1] [M1.6] takes what the published schema takes, and refuses the rest by path', () => {
    const { action } = compiled(new Files(), {});
    const { contract } = action('write_file');
    expect(validateArguments(contract, { path: '/a', content: 'b', extra: [1] }).input).toEqual({
      path: '/a',
      content: 'b',
      extra: [1],
    });
    const refused = () => validateArguments(contract, { path: 5 });
    expect(refused).toThrow(
      expect.objectContaining({
        code: 'invalid_arguments',
        details: {
          issues: expect.arrayContaining([
            expect.objectContaining({ path: '/path', message: 'must be string' }),
          ]) as Json,
        },
      }) as Error,
    );
    expect(() => validateArguments(contract, { path: '/a', content: 'b', n: 2 ** 53 })).toThrow('2^53');
  });

  test('[M1.1] two tools whose schemas have the same $id are each checked by their own', () => {
    const schema = (member: string, type: string): JsonObject => ({
      $id: 'https://odd.example/tool',
      type: 'object',
      properties: { [member]: { type } },
      required: [member],
    });
    const server = new HandDrivenUpstream('odd', [
      { name: 'a', inputSchema: schema('a', 'string') },
      { name: 'b', inputSchema: schema('b', 'number') },
    ]);
    const { action } = compiled(server, {});
    expect(validateArguments(action('a').contract, { a: 'x' }).input).toEqual({ a: 'x' });
    expect(validateArguments(action('b').contract, { b: 1 }).input).toEqual({ b: 1 });
    expect(() => validateArguments(action('b').contract, { a: 'x' })).toThrow('b');
  });

  test('[M8.1] a tool named like what every object has is not configured by that', () => {
    const listed = ['constructor', 'toString', '__proto__'].map((name) => ({
      name,
      inputSchema: { type: 'object' },
    }));
    const { tools } = compiled(new HandDrivenUpstream('odd', listed), { expose: 'configured', tools: {} });
    expect(tools.map(({ isOffered, definition }) => [isOffered, definition])).toEqual(
      listed.map(() => [false, { effect: 'unsafe' }]),
    );
  });

  test('[M8.1] an argument that every object has is missed where it is needed', () => {
    const inputSchema = {
      type: 'object',
      properties: { constructor: { type: 'string' } },
      required: ['constructor'],
    };
    const server = new HandDrivenUpstream('odd', [
      { name: 'read', inputSchema },
      { name: 'write', inputSchema: { type: 'object' } },
    ]);
    const { tool } = compiled(server, { tools: { write: { verify: { tool: 'read', verified: 'true' } } } });
    expect(tool('write').notes.defects.map(noteText).join()).toContain('read needs the argument constructor');
  });

  test('[M8.1] the operation id goes where the server takes it', async () => {
    const listed: UpstreamTool[] = [
      {
        name: 'pay',
        inputSchema: {
          type: 'object',
          properties: { amount: { type: 'number' }, request_id: { type: 'string' } },
          required: ['amount', 'request_id'],
        },
      },
    ];
    for (const [given, expected] of [
      [{ argument: 'request_id' }, { args: { amount: 1, request_id: operationId } }],
      [{ header: 'Idempotency-Key' }, { headers: { 'Idempotency-Key': operationId } }],
      [{ meta: 'acme/key' }, { meta: { 'acme/key': operationId } }],
    ] as const) {
      const server = new HandDrivenUpstream('bank', listed);
      server.behaviours['pay'] = () => answers('paid');
      const { action } = compiled(server, {
        url: 'https://bank.example/mcp',
        tools: { pay: { effect: 'conditional', key: given } },
      });
      const { contract, handlers } = action('pay');
      const args: JsonObject = 'argument' in given ? { amount: 1 } : { amount: 1, request_id: 'mine' };
      await handlers.execute(validateArguments(contract, args).input as never, context());
      expect(server.calls[0]).toMatchObject(expected);
    }
  });

  const paying = (definition: UpstreamToolDefinition = {}) => {
    const inputSchema = {
      type: 'object',
      properties: { amount: { type: 'number' }, request_id: { type: 'string' } },
      required: ['amount', 'request_id'],
      additionalProperties: false,
    };
    const server = new HandDrivenUpstream('bank', [{ name: 'pay', inputSchema }]);
    const own = { effect: 'conditional', key: { argument: 'request_id' }, ...definition } as const;
    return compiled(server, { tools: { pay: own } });
  };

  test('[S1.2] [M1.3] a key that the caller gives the server is the key of the call, and no part of what is planned', () => {
    const action = paying().action('pay');
    const plan = (args: JsonObject, key?: string) => planOperation(action, { args, principal, key });
    const mine = plan({ amount: 1, request_id: 'mine' });
    expect(mine.plan).toMatchObject({ key: 'mine', keyed: true, autoRetry: true });
    expect(mine.input).toEqual({ amount: 1 });
    const [given, fresh] = ['one', 'other'].map((request_id) => plan({ amount: 1, request_id }, 'ours'));
    expect(given?.plan).toMatchObject({ key: 'ours' });
    expect(given?.plan.fingerprint.input).toBe(fresh?.plan.fingerprint.input);
    for (const none of [{}, { request_id: '' }])
      expect(plan({ amount: 1, ...none }).plan).toMatchObject({ keyed: false });
    expect(() => plan({ amount: 1, request_id: 'k'.repeat(256) })).toThrow('too long');
    expect(() => plan({ amount: 1, request_id: 7 })).toThrow('is a number');
  });

  test('[M8.1] [S2.10] its own key argument is seen by no expression, and can not be sensitive', () => {
    const defects = (definition: UpstreamToolDefinition) =>
      paying(definition).tool('pay').notes.defects.map(noteText).join();
    expect(defects({ approval: { when: 'args.request_id == ""' } })).toContain('request_id');
    expect(defects({ sensitive: { args: ['/request_id'] } })).toContain('can not be sensitive');
    expect(defects({ approval: { when: 'args.amount > 1.0' } })).toBe('');
  });

  test('[M8.5] its version changes with the list and with the configuration', () => {
    const version = (definition: UpstreamDefinition, server = new Files()) =>
      compiled(server, definition).action('write_file').contract.version;
    const changed = new Files();
    changed.listed[0] = { ...(changed.listed[0] as UpstreamTool), description: 'Writes.' };
    expect(version({})).toBe(version({}));
    expect(
      new Set([
        version({}),
        version({}, changed),
        version({ tools: { write_file: WRITE }, safe: ['read_file'] }),
      ]).size,
    ).toBe(3);
  });
});

describe('what is wrong is told at the start, and takes no other tool along', () => {
  const listed = new Files().listed;
  const cases: [string, UpstreamToolDefinition, string][] = [
    ['conditional without a key', { effect: 'conditional' }, 'key: a conditional tool needs one'],
    [
      'a key that goes nowhere',
      { effect: 'conditional', key: { argument: 'pth' } },
      'key.argument: the key goes nowhere: write_file takes no argument pth; did you mean path?',
    ],
    [
      'a header over stdio',
      { effect: 'conditional', key: { header: 'X-Key' } },
      'key.header: the key goes nowhere',
    ],
    [
      'a tool that is not there',
      { verify: { tool: 'read_fil', verified: 'true' } },
      'verify.tool: the server has no tool read_fil; did you mean read_file?',
    ],
    [
      'an argument that is not taken',
      { verify: { tool: 'read_file', args: { pth: 'args.path' }, verified: 'true' } },
      'verify.args.pth: read_file takes no argument pth; did you mean path?',
    ],
    [
      'one that is missing',
      { verify: { tool: 'read_file', verified: 'true' } },
      'verify.args: read_file needs the argument path',
    ],
    ['a CEL error', { approval: { when: 'args.content.size() >' } }, 'approval.when (at 21)'],
    ['a name no schema has', { approval: { when: 'args.contents == ""' } }, 'did you mean content?'],
    [
      'a condition that is none',
      { precondition: { holds: 'args.path' } },
      'precondition.holds (at 0): is string, and must be bool',
    ],
    [
      'no before',
      {
        rollback: { tool: 'write_file', args: { path: 'args.path', content: 'before.old.text' } },
        lookup: WRITE.lookup,
      } as UpstreamToolDefinition,
      'Unknown variable: before',
    ],
    [
      'a rollback nothing proves',
      { ...WRITE, verifyRollback: undefined } as unknown as UpstreamToolDefinition,
      'nothing proves that a rollback worked',
    ],
    ['onCancel without a rollback', { onCancel: 'rollback' }, "onCancel: 'rollback' needs rollback.kind"],
    ['a rule that is none', { approval: { onExpiry: 'escalate' } }, 'names no roles in escalateTo'],
  ];
  test.each(cases)('[M1.1] %s', (_name, definition, message) => {
    const given = Object.fromEntries(Object.entries(definition).filter(([, value]) => value !== undefined));
    const { tool } = compiled(new Files(), { tools: { write_file: given } });
    const entry = tool('write_file');
    expect(entry.action).toBeNull();
    expect(entry.notes.defects.map(noteText).join('\n')).toContain(message);
    expect(quarantineOf(entry)).toMatchObject({ code: 'invalid_contract' });
    expect(tool('read_file').action).not.toBeNull();
  });

  test('[M1.1] a schema that is none, one that refers elsewhere, and a name that is listed twice', () => {
    const server = new HandDrivenUpstream('odd', [
      { name: 'bad', inputSchema: { type: 'objec' } },
      {
        name: 'elsewhere',
        inputSchema: { type: 'object', properties: { a: { $ref: 'https://other.example/s' } } },
      },
      { name: 'twice', inputSchema: { type: 'object' } },
      { name: 'twice', inputSchema: { type: 'object' } },
      { name: 'good', inputSchema: { type: 'object' } },
    ]);
    const { tools } = compiled(server, {});
    expect(tools.filter(({ action }) => action !== null).map(({ tool }) => tool.name)).toEqual(['good']);
  });

  test('[M8.1] a configured tool that is not listed is named with the closest', () => {
    expect(compiled(new Files(), { tools: { writ_file: {} } }).problems).toEqual([
      { tool: 'writ_file', message: 'the server lists no tool of that name; did you mean write_file?' },
    ]);
    expect(listed).toHaveLength(3);
  });
});
