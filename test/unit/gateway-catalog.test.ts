import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { createCatalog } from '../../src/gateway/catalog.ts';
import { DEFAULT_LIMITS, resolveLimits } from '../../src/gateway/limits.ts';
import { foreignToolOf, toolOf } from '../../src/gateway/tool-spec.ts';
import type { ToolSpec } from '../../src/gateway/tool-spec.ts';
import { transfer } from '../support/driven-gateway.ts';

const spec = (change: Partial<ToolSpec> = {}): ToolSpec => ({
  name: 'tool',
  description: 'a tool',
  effect: 'conditional',
  isReversible: false,
  publishSchema: () => ({ type: 'object' }),
  ...change,
});

describe('the catalog of tools', () => {
  it('checks mirrored arguments by the schema of their own tool, whatever $id others have [M1.1]', async () => {
    const publishing = (name: string, type: string) =>
      spec({
        name,
        publishSchema: () => ({
          $id: 'https://odd.example/tool',
          type: 'object',
          properties: { region: { type, 'x-mcp-header': 'Region' } },
        }),
      });
    const { mirrored } = createCatalog([publishing('a', 'string'), publishing('b', 'integer')], []);
    const issues = await Promise.all(
      mirrored.map(async ({ inputSchema }) => {
        const checked = await inputSchema['~standard'].validate({ region: 1 });
        return checked.issues?.length ?? 0;
      }),
    );
    expect(issues).toEqual([1, 0]);
  });

  it('quarantines what can not be published, by name and reason, and lists the others [M1.1]', () => {
    const broken = () => {
      throw new Error('z.bigint has no JSON form');
    };
    const catalog = createCatalog(
      [
        spec(),
        spec({ name: 'broken', publishSchema: broken }),
        spec({ name: 'a b' }),
        spec({ name: 'task_get' }),
        spec({ name: 'list', publishSchema: () => ({ type: 'array' }) }),
        spec({ name: 'last' }),
      ],
      ['task_get'],
    );
    expect(catalog.listed.map(({ name }) => name)).toEqual(['tool', 'last']);
    expect(catalog.quarantined.map(({ name, error }) => [name, error.code])).toEqual([
      ['broken', 'invalid_contract'],
      ['a b', 'invalid_contract'],
      ['task_get', 'invalid_contract'],
      ['list', 'invalid_contract'],
    ]);
    expect(catalog.find('broken')).toMatchObject({
      kind: 'quarantined',
      error: { message: expect.stringContaining('z.bigint') as string },
    });
    expect(catalog.find('nobody')).toEqual({ kind: 'unknown' });
    expect(catalog.find('constructor')).toEqual({ kind: 'unknown' });
  });

  it('keeps the first of two tools of one name [M1.1]', () => {
    const catalog = createCatalog([spec({ description: 'first' }), spec({ description: 'second' })], []);
    expect(catalog.listed).toMatchObject([{ description: 'first' }]);
    expect(catalog.find('tool')).toMatchObject({ kind: 'action' });
    expect(catalog.quarantined).toHaveLength(1);
  });

  it('publishes a schema as it was given, and never changes it [M1.1]', () => {
    const schema = {
      type: 'object',
      'x-own': [1, { a: null }],
      properties: { b: { anyOf: [{ type: 'string' }, { type: 'null' }] } },
    };
    const catalog = createCatalog([spec({ publishSchema: () => structuredClone(schema) })], []);
    expect(JSON.stringify(catalog.listed[0]?.inputSchema)).toBe(JSON.stringify(schema));
    expect(Object.isFrozen(catalog.listed[0]?.inputSchema.properties)).toBe(true);
  });

  it.each([
    ['safe', false, { readOnlyHint: true, destructiveHint: false, idempotentHint: true }],
    ['conditional', true, { readOnlyHint: false, destructiveHint: false, idempotentHint: false }],
    ['unsafe', false, { readOnlyHint: false, destructiveHint: true, idempotentHint: false }],
  ] as const)('hints at a %s action, reversible %s, for display [S5.1]', (effect, isReversible, hints) => {
    expect(createCatalog([spec({ effect, isReversible })], []).listed[0]?.annotations).toMatchObject(hints);
  });

  it('makes a tool of a contract, unions, defaults and optionals included [M1.1]', () => {
    const contract = defineAction({
      ...{ name: 'book', version: 1, description: 'Books.', effect: 'unsafe', output: z.json() },
      input: z.object({
        at: z.union([z.string(), z.int()]),
        seats: z.int().default(1),
        note: z.string().optional(),
      }),
      rollback: { kind: 'none', reason: 'it flies' },
      verify: { none: 'no one to ask' },
    });
    const [tool] = createCatalog([toolOf(contract)], []).listed;
    expect(tool?.inputSchema).toMatchObject({
      required: ['at'],
      properties: {
        at: { anyOf: [{ type: 'string' }, { type: 'integer' }] },
        seats: { default: 1 },
        note: {},
        idempotencyKey: { type: 'string' },
      },
    });
    expect(toolOf(transfer)).toMatchObject({ effect: 'conditional', isReversible: true, attach: true });
  });
});

describe('the limits', () => {
  it('are the defaults under what is given, and refused out of range', () => {
    expect(resolveLimits({ blockingMs: 10 })).toEqual({ ...DEFAULT_LIMITS, blockingMs: 10 });
    expect(resolveLimits({ inlineWaitMs: 0 }).inlineWaitMs).toBe(0);
    for (const limits of [
      { blockingMs: 0 },
      { blockingMs: 2 ** 31 },
      { keepAliveMs: 1.5 },
      { drainMs: -1 },
      { inlineWaitMs: NaN },
    ]) {
      expect(() => resolveLimits(limits)).toThrow(
        expect.objectContaining({ code: 'invalid_configuration' }) as Error,
      );
    }
  });

  it('let a call answer before the 60 s after which the SDK’s clients give up [M3.1]', () => {
    expect(DEFAULT_LIMITS.blockingMs).toBeLessThanOrEqual(50_000);
  });
});

describe('a tool of another server', () => {
  const contract = defineAction({
    ...{ name: 'odd__read', version: 1, description: 'Reads.', effect: 'safe' },
    ...{ input: z.looseObject({}), output: z.looseObject({}) },
  });
  const outputSchema = { type: 'object', properties: { count: { type: 'integer' } }, 'x-own': [1] };
  const foreign = { contract, displayName: 'odd__read', inputSchema: { type: 'object' }, outputSchema };

  it('that is passed through keeps its output schema byte for byte; a recorded one has none [M1.1] [M8.1]', () => {
    const direct = () => Promise.resolve({});
    const [passed] = createCatalog([foreignToolOf({ ...foreign, direct })], []).listed;
    expect(JSON.stringify(passed?.outputSchema)).toBe(JSON.stringify(outputSchema));
    expect(createCatalog([foreignToolOf(foreign)], []).listed[0]).not.toHaveProperty('outputSchema');
  });
});
