import { describe, expect, test } from 'vitest';
import { celTypeOf, fromCel } from '../../../src/upstream/cel/cel-type.ts';
import type { CelType } from '../../../src/upstream/cel/cel-type.ts';
import { LIMITS } from '../../../src/contract/limits.ts';
import { CelScope } from '../../../src/upstream/cel/expression.ts';
import type { Wanted } from '../../../src/upstream/cel/expression.ts';
import type { Json, JsonObject } from '../../../src/task/json.ts';

const scope = new CelScope({
  args: celTypeOf(
    {
      type: 'object',
      properties: {
        path: { type: 'string' },
        count: { type: 'integer' },
        price: { type: 'number' },
        tags: { type: 'array', items: { type: 'string' } },
        nested: { type: 'object', properties: { deep: { type: 'string' } } },
        ref: { $ref: '#/$defs/point' },
        either: { anyOf: [{ type: 'string' }, { type: 'number' }] },
      },
      $defs: { point: { type: 'object', properties: { x: { type: 'integer' } } } },
    },
    { $defs: { point: { type: 'object', properties: { x: { type: 'integer' } } } } },
  ),
  operationId: { kind: 'string' },
});

const args = { path: '/a', count: 3, price: 5, tags: ['x', 'y'], nested: { deep: 'd', more: 1 }, either: 2 };

function run(
  source: string,
  wanted: Wanted = 'json',
  values: Record<string, Json> = { args, operationId: 'op_1' },
) {
  const compiled = scope.compile(source, wanted);
  return 'problems' in compiled ? compiled : compiled.expression.evaluate(values);
}

describe('what is checked at the start', () => {
  test.each([
    ['args.pth == "x"', 0, 'did you mean path?'],
    ['has(args.pth)', 4, 'did you mean path?'],
    ['args["pth"] == "x"', 0, 'did you mean path?'],
    ['args.tags.exists(t, t == args.pats)', 25, 'did you mean path?'],
    ['args.nested.dep == "x"', 0, 'args.nested has no dep; did you mean deep?'],
    ['args.ref.y == 1', 0, 'args.ref has no y; there is x'],
  ])('[M8.1] %s names an argument that is not there, with the closest', (source, at, message) => {
    const answer = run(source, 'bool');
    expect(answer).toMatchObject({ problems: [{ at, message: expect.stringContaining(message) as string }] });
  });

  test.each([
    ['args.price + 1', 'bool', 'double + int'],
    ['args.count', 'string', 'is int, and must be string'],
    ['args.path', 'bool', 'is string, and must be bool'],
    ['1 +', 'json', 'EOF'],
    ['nobody.knows', 'json', 'Unknown variable'],
    ['args.path.matches("(a+)+$")', 'bool', 'its time is not bounded'],
  ] as const)('[M8.1] %s as %s: %s', (source, wanted, message) => {
    expect(run(source, wanted)).toMatchObject({
      problems: [{ message: expect.stringContaining(message) as string }],
    });
  });
});

describe('what it answers', () => {
  test.each<[string, Json]>([
    ['args.count + 1', 4],
    ['args.price > 4.5', true],
    ['args.price > 4', true],
    ['args.price * 2.0', 10],
    ['args.nested', { deep: 'd', more: 1 }],
    ['[{"who": args.path, "n": args.count, "all": args}]', [{ who: '/a', n: 3, all: args }]],
    ['args.tags.filter(t, t != "x")', ['y']],
    ['json("{\\"a\\":[1]}").a[0] == 1.0', true],
    ['args.path + "." + operationId', '/a.op_1'],
    ['args.path.startsWith("/a") ? dyn(null) : dyn(args.path)', null],
  ])('[M8.1] %s is %j', (source, value) => {
    expect(run(source)).toEqual({ ok: true, value });
  });

  test('[M8.1] a value of another type, a missing one, and one beyond 2^53 are no value, without a word of what was given', () => {
    expect(run('args.count + 1', 'json', { args: { count: 'secret' } })).toMatchObject({ ok: false });
    expect(run('args.path', 'string', { args: {} })).toEqual({ ok: false, reason: 'no_such_key at 5' });
    expect(run('args.either', 'bool')).toEqual({ ok: false, reason: 'it is neither true nor false' });
    expect(run('args.count * 9007199254740993')).toEqual({
      ok: false,
      reason: 'its value can not be kept as JSON',
    });
    expect(run('json(args.path).x', 'json', { args: { path: '{"x":9007199254740993}' } })).toMatchObject({
      ok: false,
    });
    expect(JSON.stringify(run('int(args.path) == 1', 'bool', { args: { path: 'secret' } }))).not.toContain(
      'secret',
    );
  });

  test('[M8.1] macros within macros over long lists are refused before they begin', () => {
    const tags = Array.from({ length: 1_001 }, () => 'x');
    expect(run('args.tags.all(a, args.tags.exists(b, a == b))', 'bool', { args: { tags } })).toEqual({
      ok: false,
      reason: 'it would take too many steps',
    });
    expect(run('args.tags.all(a, a == "x")', 'bool', { args: { tags } })).toEqual({ ok: true, value: true });
  });

  test.each(['json(args.path)', 'args.path.split(",")'])(
    '[M8.1] so are those over the list that %s makes',
    (list) => {
      const source = `${list}.all(a, ${list}.exists(b, a == b))`;
      const path = JSON.stringify(Array.from({ length: 600 }, () => 1));
      expect(run(source, 'bool', { args: { path } })).toEqual({
        ok: false,
        reason: 'it would take too many steps',
      });
      expect(run(source, 'bool', { args: { path: '[1,1]' } })).toEqual({ ok: true, value: true });
    },
  );

  test('what is no JSON is none', () => {
    for (const value of [
      new Date(),
      new Uint8Array(1),
      NaN,
      2n ** 60n,
      undefined,
      [undefined],
      new Map([[1, 2]]),
    ])
      expect(fromCel(value)).toBeUndefined();
  });
});

test('which answers an expression judges the failure of', () => {
  const answers = new CelScope({
    reads: {
      kind: 'object',
      fields: { now: { kind: 'object', fields: { isError: { kind: 'bool' }, text: { kind: 'string' } } } },
    },
  });
  const judged = (source: string) => {
    const compiled = answers.compile(source, 'bool');
    return 'expression' in compiled ? [...compiled.expression.judgedFailures] : compiled;
  };
  expect(judged('!reads.now.isError && reads.now.text == ""')).toEqual(['reads.now']);
  expect(judged('reads.now.text == ""')).toEqual([]);
});

describe('a schema that refers to itself', () => {
  const nodesIn = (type: CelType): number => {
    if (type.kind === 'list') return 1 + nodesIn(type.of);
    if (type.kind !== 'object') return 1;
    return Object.values(type.fields).reduce((sum, field) => sum + nodesIn(field), 1);
  };
  const itself = (times: number, extra: JsonObject = {}): JsonObject => ({
    type: 'object',
    properties: {
      ...Object.fromEntries(Array.from({ length: times }, (_, at) => [`r${at}`, { $ref: '#/$defs/node' }])),
      ...extra,
    },
  });

  test.each([2, 3, 100])('[M1.1] %i times over is known as far as the bound, and no further', (times) => {
    const node = itself(times, { list: { type: 'array', items: { $ref: '#/$defs/node' } } });
    const schema = { ...node, $defs: { node } };
    const type = celTypeOf(schema, schema);
    expect(nodesIn(type)).toBeLessThanOrEqual(LIMITS.celTypeNodesMax.value);
    expect(nodesIn(type)).toBeGreaterThan(100);
  });

  test('[M8.1] is known level by level: what stands beside the references is not forgotten for them', () => {
    const node = itself(3, { count: { type: 'integer' } });
    const schema = { ...node, $defs: { node } };
    expect(celTypeOf(schema, schema)).toMatchObject({
      fields: { count: { kind: 'int' }, r2: { fields: { count: { kind: 'int' }, r2: { kind: 'object' } } } },
    });
  });

  test('[M8.1] a property may have a name that every object has', () => {
    const schema = {
      type: 'object',
      properties: { ['__proto__']: { type: 'integer' }, constructor: { type: 'string' } },
    };
    const { fields } = celTypeOf(schema) as Extract<CelType, { kind: 'object' }>;
    expect(Object.entries(fields)).toEqual([
      ['__proto__', { kind: 'int' }],
      ['constructor', { kind: 'string' }],
    ]);
  });
});
