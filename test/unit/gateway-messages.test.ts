import { PassThrough } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { takeKey } from '../../src/gateway/idempotency-key.ts';
import { StdioLines } from '../../src/gateway/stdio-lines.ts';
import { readMessage, refuseInexact } from '../../src/gateway/wire-message.ts';
import type { JsonObject } from '../../src/task/json.ts';

const call = (args: string, id = '1') =>
  `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{"name":"t","arguments":${args}}}`;
const metaOf = (value: unknown) => (value as { params: { _meta: JsonObject } }).params._meta;

describe('a message as text', () => {
  it('that is exact goes on as it is [M1.6]', () => {
    const verdict = readMessage(call('{"amount":9007199254740991,"note":"9007199254740993"}'), 100);
    expect(verdict).toMatchObject({
      kind: 'message',
      value: { params: { arguments: { amount: 9007199254740991 } } },
    });
  });

  it.each([
    ['{"a":9007199254740993}', '/a'],
    ['{"a":[{"b":-9007199254740993}]}', '/a/0/b'],
    ['{"a":1,"a":1}', '/a'],
    ['[1e30]', '/0'],
    ['1e30', ''],
  ])('with inexact arguments %s goes on emptied and marked, and is refused by path [M1.6]', (args, path) => {
    const verdict = readMessage(call(args), 100);
    expect(verdict).toMatchObject({ kind: 'message', value: { params: { name: 't', arguments: {} } } });
    const { value } = verdict as { value: unknown };
    expect(() => refuseInexact(metaOf(value))).toThrow(
      expect.objectContaining({ code: 'invalid_arguments' }) as Error,
    );
    expect(Object.values(metaOf(value))).toEqual([expect.objectContaining({ path })]);
  });

  it.each([5, null, {}, { path: 7 }, 'x'])('a mark of the client’s own, %j, has its call refused', (mark) => {
    expect(() => refuseInexact({ 'holdfast/inexact': mark })).toThrow(
      expect.objectContaining({
        code: 'invalid_arguments',
        message: expect.stringContaining('is set by the gateway alone') as string,
      }) as Error,
    );
  });

  it('keeps what else is in _meta beside the mark', () => {
    const text = call('{"a":1e30}').replace('"name":"t"', '"name":"t","_meta":{"progressToken":5}');
    expect(metaOf((readMessage(text, 100) as { value: unknown }).value)).toMatchObject({ progressToken: 5 });
  });

  it('in a batch is marked alone [M1.6]', () => {
    const verdict = readMessage(`[${call('{"a":1}')},${call('{"a":1e30}')}]`, 100);
    const [fine, marked] = (verdict as unknown as { value: { params: { _meta?: object } }[] }).value;
    expect(fine?.params).not.toHaveProperty('_meta');
    expect(marked?.params).toHaveProperty('_meta');
  });

  it.each([
    ['an id', call('{}', '9007199254740993'), null],
    ['a progress token', call('{}').replace('"name":"t"', '"name":"t","_meta":{"progressToken":1e30}'), 1],
    ['the arguments of another method', call('{"a":1e30}').replace('tools/call', 'prompts/get'), 1],
    ['a whole batch', `[${call('{}', '1e30')}]`, null],
  ])('with %s that can not be kept is refused with the id that is known [M1.6]', (_what, text, id) => {
    expect(readMessage(text, 100)).toMatchObject({ kind: 'inexact', id });
  });

  it('that is no JSON, or nested too deep, is refused; brackets in strings do not count [M7.2]', () => {
    expect(readMessage('{"a":', 100)).toEqual({ kind: 'not_json' });
    expect(readMessage(`${'['.repeat(9)}${']'.repeat(9)}`, 8)).toEqual({ kind: 'too_deep' });
    expect(readMessage('["[[[[[\\"[[[[[[", [[]], [[]]]', 3)).toMatchObject({ kind: 'message' });
    expect(readMessage('['.repeat(2_000_000), 100)).toEqual({ kind: 'too_deep' });
  });
});

describe('the lines of stdin', () => {
  async function through(chunks: (string | Buffer)[], messageBytesMax = 1_000) {
    const answers: object[] = [];
    const lines = new StdioLines({
      messageBytesMax,
      messageDepthMax: 20,
      answer: (error) => answers.push(error),
    });
    const source = new PassThrough();
    const read: Buffer[] = [];
    const ended = new Promise<void>((resolve) =>
      lines.on('data', (part: Buffer) => read.push(part)).once('end', resolve),
    );
    source.pipe(lines);
    for (const chunk of chunks) source.write(chunk);
    source.end();
    await ended;
    return { passed: Buffer.concat(read).toString().split('\n').filter(Boolean), answers };
  }

  it('pass in order, however they are cut into chunks [M1.6]', async () => {
    const bytes = Buffer.from(`${call('{"a":"häß€😀"}')}\n\r\n${call('{"b":2}', '2')}\r\n`);
    const { passed, answers } = await through(
      Array.from(bytes, (_byte, index) => bytes.subarray(index, index + 1)),
    );
    expect(passed.map((line) => (JSON.parse(line) as { params: JsonObject }).params.arguments)).toEqual([
      { a: 'häß€😀' },
      { b: 2 },
    ]);
    expect(answers).toEqual([]);
  });

  it('that are no UTF-8 are refused: two keys must not become one by what is put in their place [S1.2]', async () => {
    const [before = '', after = ''] = call('{"idempotencyKey":"order-@"}').split('@');
    const keyed = (byte: number) => Buffer.from([...Buffer.from(before), byte, ...Buffer.from(`${after}\n`)]);
    const { passed, answers } = await through([keyed(0xff), keyed(0xfe)]);
    expect(passed).toEqual([]);
    expect(answers).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: null, error: { code: -32700 } },
    ]);
  });

  it('that can not be taken are answered, and the next ones pass [M1.6] [M7.2]', async () => {
    const { passed, answers } = await through([
      `no json\n${'x'.repeat(5_000)}`,
      `${'x'.repeat(5_000)}\n`,
      `${'['.repeat(30)}\n`,
      `${call('{}', '1e30')}\n`,
      `${call('{}')}\n`,
    ]);
    expect(passed).toHaveLength(1);
    expect(answers).toMatchObject([
      { id: null, error: { code: -32700 } },
      { id: null, error: { code: -32000, data: { code: 'payload_too_large' } } },
      { id: null, error: { code: -32600, data: { details: { depthMax: 20 } } } },
      { id: null, error: { code: -32600, data: { details: { path: '/id' } } } },
    ]);
  });
});

describe('the idempotency key', () => {
  const meta = (key: unknown) => ({ 'holdfast/idempotencyKey': key });

  it.each([
    ['as an argument', { a: 1, idempotencyKey: 'k' }, {}, { args: { a: 1 }, key: 'k' }],
    ['in _meta', { a: 1 }, meta('k'), { args: { a: 1 }, key: 'k' }],
    ['in both, equal', { idempotencyKey: 'k' }, meta('k'), { args: {}, key: 'k' }],
    ['nowhere', { a: 1 }, {}, { args: { a: 1 } }],
  ])('is taken %s [M1.3]', (_where, args, given, expected) => {
    expect(takeKey(args, given, true)).toEqual(expected);
  });

  it('given twice and different is an invalid argument [M1.3]', () => {
    expect(() => takeKey({ idempotencyKey: 'k' }, meta('l'), true)).toThrow(
      expect.objectContaining({ code: 'invalid_arguments' }) as Error,
    );
  });

  it.each([7, null, '', 'x'.repeat(256)])('that is %o is invalid, wherever it comes from [S1.2]', (key) => {
    const invalid = expect.objectContaining({ code: 'invalid_key' }) as Error;
    expect(() => takeKey({ idempotencyKey: key }, {}, true)).toThrow(invalid);
    expect(() => takeKey({}, meta(key), true)).toThrow(invalid);
  });

  it('of a safe action is a field like any other, and counts in _meta only [M1.3]', () => {
    expect(takeKey({ idempotencyKey: 'k' }, {}, false)).toEqual({ args: { idempotencyKey: 'k' } });
    expect(takeKey({}, meta('k'), false)).toEqual({ args: {}, key: 'k' });
  });
});
