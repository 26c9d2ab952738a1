import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { defineConfig } from '../../src/contract/define-config.ts';
import type { HoldfastConfig } from '../../src/contract/define-config.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import { inputJsonSchema, outputJsonSchema } from '../../src/contract/json-schema.ts';
import { FIXED_GATEWAY_LIMITS, GATEWAY_LIMITS } from '../../src/contract/gateway-limits.ts';
import { LIMITS } from '../../src/contract/limits.ts';
import * as root from '../../src/index.ts';
import { MCP_CLIENT_LIMITS } from '../../src/mcp-client/limits.ts';

const input = z.object({
  target: z.union([z.object({ iban: z.string() }), z.object({ card: z.string().min(4) })]),
  kind: z.discriminatedUnion('type', [
    z.object({ type: z.literal('a'), n: z.int() }),
    z.object({ type: z.literal('b') }),
  ]),
  amount: z.int().positive().describe('in cents'),
  currency: z.enum(['EUR', 'USD']).default('EUR'),
  memo: z.string().max(10).optional(),
  length: z.string().transform((text) => text.length),
});
const define = (change: object = {}) =>
  defineAction({
    name: 'pay',
    version: 1,
    description: 'Pays.',
    input,
    output: z.object({ id: z.string(), at: z.iso.datetime() }),
    effect: 'unsafe',
    rollback: { kind: 'outOfBand' },
    verify: { none: 'nothing to read' },
    ...change,
  });

describe('the published schema', () => {
  test('is what the handler accepts: unions, defaults, optionals, before transforms [M1.1]', () => {
    const schema = inputJsonSchema(define());
    expect(schema).toMatchObject({
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      required: ['target', 'kind', 'amount', 'length'],
      additionalProperties: false,
      properties: {
        target: { anyOf: [{ required: ['iban'] }, { required: ['card'] }] },
        kind: { oneOf: [{ properties: { type: { const: 'a' } } }, { properties: { type: { const: 'b' } } }] },
        amount: { type: 'integer', exclusiveMinimum: 0, description: 'in cents' },
        currency: { enum: ['EUR', 'USD'], default: 'EUR' },
        memo: { type: 'string', maxLength: 10 },
        length: { type: 'string' },
      },
    });
    expect(JSON.parse(JSON.stringify(schema))).toEqual(schema);
  });

  test('has idempotencyKey for every tool that is not safe, and never requires it [M1.3]', () => {
    const key = { type: 'string', minLength: 1, maxLength: 255 };
    expect(inputJsonSchema(define()).properties).toMatchObject({ idempotencyKey: key });
    expect(inputJsonSchema(define({ effect: 'conditional' })).properties).toMatchObject({
      idempotencyKey: key,
    });
    expect(inputJsonSchema(define({ effect: 'safe', rollback: undefined })).properties).not.toHaveProperty(
      'idempotencyKey',
    );
  });

  test('of the output is that of the parsed result [M1.1]', () => {
    expect(outputJsonSchema(define())).toMatchObject({
      type: 'object',
      required: ['id', 'at'],
      properties: { at: { format: 'date-time' } },
    });
  });

  test('says nothing of sensitive marks [S2.10]', () => {
    const marked = define({ input: z.object({ pin: root.sensitive(z.string().describe('four digits')) }) });
    expect(inputJsonSchema(marked).properties).toMatchObject({
      pin: { type: 'string', description: 'four digits' },
    });
    expect(JSON.stringify(inputJsonSchema(marked))).not.toContain('sensitive');
  });
});

const pay = (name = 'pay') =>
  implementAction(define({ name }), { execute: async () => ({ id: '', at: '' }) });
const token = { sha256: 'a'.repeat(64), tenant: 't', subject: 's', roles: [] };
const defectsOf = (config: object): string => {
  try {
    defineConfig(config as HoldfastConfig);
    return '';
  } catch (error) {
    if (!(error instanceof HoldfastError)) throw error;
    expect(error.code).toBe('invalid_configuration');
    return error.message;
  }
};

describe('a configuration', () => {
  test('is answered as it was given', () => {
    const config: HoldfastConfig = {
      actions: [pay(), pay('refund')],
      auth: { tokens: [token] },
      alerts: { deliver: async () => undefined },
      limits: { blockingMs: 1_000 },
      gateway: { allowedHosts: ['tools.example'] },
      worker: { shutdownGrace: '15s' },
      port: 7400,
    };
    expect(defineConfig(config)).toBe(config);
  });

  test.each([
    ['an action that is there twice', { actions: [pay(), pay()] }, 'actions.1: pay is there twice'],
    [
      'a name of our own tools',
      { actions: [pay('task_get')] },
      "actions.0: task_get is the name of one of Holdfast's own tools",
    ],
    ['a contract without handlers', { actions: [define()] }, 'actions.0: write what implementAction'],
    ['no actions at all', {}, 'actions:'],
    ['an unknown section', { actions: [], retries: 3 }, '(configuration): unknown: retries'],
    ['an unknown limit', { actions: [], limits: { speed: 1 } }, 'limits'],
    [
      'a misspelt token field',
      { actions: [], auth: { tokens: [{ ...token, role: 'x' }] } },
      'auth.tokens.0: unknown: role',
    ],
    [
      'a token that is no hash',
      { actions: [], auth: { tokens: [{ ...token, sha256: 'secret' }] } },
      'auth.tokens.0.sha256: write the token’s SHA-256',
    ],
    [
      'the same token twice',
      { actions: [], auth: { tokens: [token, token] } },
      'auth.tokens.1.sha256: the same token is there twice',
    ],
    [
      'an alert without a function',
      { actions: [], alerts: { deliver: 'mail' } },
      'alerts.deliver: write an async function',
    ],
    ['an unknown gateway key', { actions: [], gateway: { host: 'x' } }, 'gateway: unknown: host'],
  ])('with %s is refused, naming it', (_name, config, expected) => {
    expect(defectsOf(config)).toContain(expected);
    expect(defectsOf(config)).not.toContain('secret');
  });
});

test('every limit of the gateway and of the client has a value, a unit and a description', () => {
  const limits = { ...GATEWAY_LIMITS, ...FIXED_GATEWAY_LIMITS, ...MCP_CLIENT_LIMITS };
  for (const [name, { value, unit, what }] of Object.entries(limits)) {
    expect(Number.isSafeInteger(value) && value > 0, name).toBe(true);
    expect(
      [unit, what].every((text) => text.length > 0),
      name,
    ).toBe(true);
  }
});

test('every limit has a value, a unit and a reason', () => {
  for (const [name, { value, unit, why, what, beyond }] of Object.entries(LIMITS)) {
    expect(Number.isSafeInteger(value) && value > 0, name).toBe(true);
    expect(
      [unit, why, what, beyond].every((text) => text.length > 0),
      name,
    ).toBe(true);
  }
});

test('the package’s root exports what its users write with', () => {
  expect(Object.keys(root).sort()).toMatchInlineSnapshot(`
    [
      "ActionFailure",
      "ERROR_CODES",
      "HoldfastError",
      "applied",
      "classifyFailure",
      "defineAction",
      "defineConfig",
      "defineProcedure",
      "fails",
      "fetchFailure",
      "holds",
      "implementAction",
      "mismatch",
      "notApplied",
      "notYet",
      "remoteTask",
      "sensitive",
      "unknown",
      "verified",
    ]
  `);
});
