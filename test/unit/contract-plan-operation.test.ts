import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import type { ActionDefinition } from '../../src/contract/define-action.ts';
import { checkResult } from '../../src/contract/arguments.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { fingerprintOf } from '../../src/contract/fingerprint.ts';
import { verified } from '../../src/contract/handlers.ts';
import { operationIdOf } from '../../src/contract/ids.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import type { Action } from '../../src/contract/implement-action.ts';
import { planOperation } from '../../src/contract/plan-operation.ts';
import type { PlanRequest } from '../../src/contract/plan-operation.ts';
import { deriveHashKey, differingPaths } from '../../src/contract/redact.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import type { Json } from '../../src/task/json.ts';
import type { Reservation } from '../../src/ledger/ledger.ts';

const input = z.object({
  amount: z.int().positive(),
  currency: z.enum(['EUR', 'USD']).default('EUR'),
  to: z.string().optional(),
});
const principal = { tenant: 'acme', subject: 'ann', roles: ['buyer'] };

function actionOf(
  change: Partial<ActionDefinition<z.ZodObject, z.ZodType>> = {},
  handlers: object = {},
): Action {
  const contract = defineAction({
    name: 'charge',
    version: 3,
    description: 'Charges.',
    input,
    output: z.object({ id: z.string() }),
    effect: 'conditional',
    rollback: { kind: 'inBand' },
    ...change,
  });
  return implementAction(contract, {
    execute: async (_input: unknown, _context: unknown) => ({ id: 'x' }),
    ...(contract.noVerify === null && { verify: async () => verified() }),
    ...(contract.rollback.kind === 'inBand' && {
      rollback: async () => undefined,
      verifyRollback: async () => verified(),
    }),
    ...handlers,
  });
}
const charge = actionOf();
const plan = (args: unknown, request: Partial<PlanRequest> = {}, action = charge) =>
  planOperation(action, { args, principal, key: 'order-1', ...request });

function refusal(make: () => unknown): HoldfastError {
  try {
    make();
  } catch (error) {
    if (error instanceof HoldfastError) return error;
    throw error;
  }
  throw new Error('it was not refused');
}
const issuesOf = (error: HoldfastError) =>
  error.details['issues'] as { path: string; message: string; expected: string }[];

describe('a plan', () => {
  test('freezes everything its run depends on, as plain JSON [S1.3] [S1.4]', () => {
    const { plan: frozen, input: validated } = plan({ amount: 5 });
    expect(frozen).toEqual({
      v: 1,
      action: 'charge',
      approval: null,
      contractVersion: 3,
      principal,
      operationId: operationIdOf('acme', 'charge', 'order-1'),
      key: 'order-1',
      keyed: true,
      effect: 'conditional',
      autoRetry: true,
      transactional: false,
      fingerprint: {
        sent: fingerprintOf('acme', 'charge', { amount: 5 }),
        input: fingerprintOf('acme', 'charge', { amount: 5, currency: 'EUR' }),
      },
      handlers: { precondition: false, lookup: 'none', verify: true, rollback: true },
      rollback: { kind: 'inBand' },
      sensitive: { input: [], output: [] },
      deadlines: {
        attemptMs: 10_000,
        verifyMs: 30_000,
        runMs: 3_600_000,
        settleMs: 60_000,
        heartbeatMs: 5_000,
      },
      retry: { maximumRetries: 5, initialIntervalMs: 1_000, maximumIntervalMs: 60_000 },
      onCancel: 'keep',
      cancelAttempt: 'finish',
      inline: false,
      recorded: true,
    });
    expect(JSON.parse(JSON.stringify(frozen))).toEqual(frozen);
    expect(validated).toEqual({ amount: 5, currency: 'EUR' });
  });

  test('comes with what the ledger reserves [S1.5]', () => {
    const { plan: frozen, reservation } = plan({ amount: 5 });
    const reserved: Reservation = reservation;
    expect(reserved).toEqual({
      operationId: frozen.operationId,
      principal,
      action: 'charge',
      key: 'order-1',
      keyed: true,
      contractVersion: 3,
      effect: 'conditional',
      fingerprint: frozen.fingerprint,
      arguments: { amount: 5, currency: 'EUR' },
      attach: false,
    });
  });

  test('shares no part with its contract, its request or its reservation', () => {
    const { plan: frozen, reservation } = plan({ amount: 5 });
    frozen.principal.roles.push('admin');
    frozen.deadlines.attemptMs = 1;
    frozen.fingerprint.sent = '';
    expect(principal.roles).toEqual(['buyer']);
    expect(reservation.principal.roles).toEqual(['buyer']);
    expect(reservation.fingerprint.sent).not.toBe('');
    expect(plan({ amount: 5 }).plan.deadlines.attemptMs).toBe(10_000);
  });

  test('has one of its fingerprints equal when a default is given or left out, keys are permuted, or a deploy adds a default [S1.4]', () => {
    const omitted = plan({ amount: 5 }).plan.fingerprint;
    const given = plan({ currency: 'EUR', amount: 5 }).plan.fingerprint;
    expect(given.input).toBe(omitted.input);
    const grown = actionOf({ input: input.extend({ memo: z.string().default('none') }), version: 4 });
    const later = plan({ amount: 5 }, {}, grown).plan.fingerprint;
    expect(later.sent).toBe(omitted.sent);
    expect(later.input).not.toBe(omitted.input);
  });

  test('differs under another key, tenant or action, and not under another subject [S1.3]', () => {
    const id = (request: Partial<PlanRequest>, action = charge) =>
      plan({ amount: 5 }, request, action).plan.operationId;
    const ids = [
      id({}),
      id({ key: 'order-2' }),
      id({ principal: { ...principal, tenant: 'b' } }),
      id({}, actionOf({ name: 'pay' })),
    ];
    expect(new Set(ids).size).toBe(4);
    expect(id({ principal: { ...principal, subject: 'bob' } })).toBe(id({}));
  });

  test('has the lookup as declared where there is one [S2.4]', () => {
    const lookup = async () => ({ kind: 'not_applied' as const });
    expect(plan({ amount: 1 }, {}, actionOf({}, { lookup })).plan.handlers.lookup).toBe('plain');
    expect(plan({ amount: 1 }, {}, actionOf({ lookup: 'conclusive' }, { lookup })).plan.handlers.lookup).toBe(
      'conclusive',
    );
  });
});

describe('a keyless call', () => {
  test('gets a key of its own each time and is never sent again automatically [S1.7]', () => {
    const [a, b] = [plan({ amount: 5 }, { key: undefined }), plan({ amount: 5 }, { key: undefined })];
    expect(a.plan).toMatchObject({ keyed: false, autoRetry: false });
    expect(a.plan.operationId).not.toBe(b.plan.operationId);
    expect(a.plan.fingerprint).toEqual(b.plan.fingerprint);
  });

  test('is retried all the same when it changes nothing [S5.1]', () => {
    const read = actionOf({ effect: 'safe', rollback: { kind: 'none' } });
    expect(plan({ amount: 5 }, { key: undefined }, read).plan.autoRetry).toBe(true);
  });

  test('attaches unless contract or call switch it off; a keyed one never does [M1.4]', () => {
    const attach = (request: Partial<PlanRequest>, action = charge) =>
      plan({ amount: 5 }, request, action).reservation.attach;
    expect(attach({ key: undefined })).toBe(true);
    expect(attach({ key: undefined, attach: false })).toBe(false);
    expect(attach({ key: undefined, attach: true }, actionOf({ attach: false }))).toBe(false);
    expect(attach({ attach: true })).toBe(false);
  });
});

describe('running inline', () => {
  const isInline = (change: Partial<ActionDefinition<z.ZodObject, z.ZodType>>, handlers?: object) =>
    plan({ amount: 1 }, {}, actionOf(change, handlers)).plan.inline;

  test('needs attempt and verify within 2 s together, an effect that is not unsafe, and no objection [S2.13]', () => {
    const short = { attempt: '1s', verify: '1s' } as const;
    expect(isInline({ deadlines: short })).toBe(true);
    expect(isInline({ deadlines: { ...short, verify: '1001ms' } })).toBe(false);
    expect(isInline({ deadlines: short, effect: 'unsafe' })).toBe(false);
    expect(isInline({ deadlines: short, inline: false })).toBe(false);
    expect(isInline({ deadlines: short, transactional: true })).toBe(true);
  });

  test('does not count the verify deadline of an action that has no verify [S2.13]', () => {
    const none = { verify: { none: 'nothing to see' } };
    expect(isInline({ ...none, deadlines: { attempt: '2s', verify: '30s' } })).toBe(true);
    expect(isInline({ ...none, deadlines: { attempt: '2001ms' } })).toBe(false);
  });
});

describe('arguments', () => {
  test('that do not fit are refused with path, message and expectation [M1.2]', () => {
    const error = refusal(() => plan({ amount: -1, currency: 'GBP', to: 7 }));
    expect(error.code).toBe('invalid_arguments');
    expect(issuesOf(error).map(({ path, expected }) => [path, expected])).toEqual([
      ['/amount', 'more than 0 (number)'],
      ['/currency', '"EUR" | "USD"'],
      ['/to', 'string'],
    ]);
  });

  test('with a name that the contract does not know are refused, not dropped (field case 21) [S4.2]', () => {
    const [issue] = issuesOf(refusal(() => plan({ amount: 1, dryRun: true })));
    expect(issue).toMatchObject({ path: '', expected: 'no dryRun' });
    const loose = actionOf({ input: z.looseObject({ amount: z.int() }) });
    expect(plan({ amount: 1, dryRun: true }, {}, loose).input).toEqual({ amount: 1, dryRun: true });
  });

  test.each([
    ['NaN', { amount: Number.NaN }, '/amount'],
    ['a large integer', { amount: 2 ** 53 }, '/amount'],
    ['a BigInt', { amount: 1n }, '/amount'],
    ['undefined in a list', { amount: 1, to: [undefined] }, '/to/0'],
    ['no object', [1], ''],
    ['null', null, ''],
  ])('holding %s are refused with the path [S1.4]', (_name, args, path) => {
    const error = refusal(() => plan(args));
    expect(error.code).toBe('invalid_arguments');
    expect(issuesOf(error)[0]?.path).toBe(path);
  });

  test('that a transform turns into no JSON are refused with the path [S1.4]', () => {
    const dated = actionOf({ input: z.object({ at: z.string().transform((text) => new Date(text)) }) });
    expect(issuesOf(refusal(() => plan({ at: '2026-01-01' }, {}, dated)))[0]).toMatchObject({
      path: '/at',
      message: 'an instance of Date',
    });
  });

  test('of 1 MiB are taken and of a byte more are not (field case 14)', () => {
    const text = actionOf({ input: z.object({ to: z.string() }) });
    const overhead = '{"to":""}'.length;
    expect(plan({ to: 'x'.repeat(1_048_576 - overhead) }, {}, text).input).toBeDefined();
    const error = refusal(() => plan({ to: 'x'.repeat(1_048_577 - overhead) }, {}, text));
    expect(error.toJSON()).toMatchObject({
      code: 'payload_too_large',
      details: { bytes: 1_048_577, limit: 1_048_576 },
    });
    expect(refusal(() => plan({ to: 'é'.repeat(600_000) }, {}, text)).code).toBe('payload_too_large');
    expect(refusal(() => plan({ to: 'x'.repeat(3_000_000) }, {}, text)).code).toBe('payload_too_large');
  });

  test('that defaults blow up beyond 1 MiB are refused too (field case 14)', () => {
    const grown = actionOf({ input: z.object({ to: z.string().default('x'.repeat(1_100_000)) }) });
    expect(refusal(() => plan({}, {}, grown)).code).toBe('payload_too_large');
  });

  test('name at most 20 issues', () => {
    const many = actionOf({ input: z.object({ list: z.array(z.int()) }) });
    expect(
      issuesOf(refusal(() => plan({ list: Array.from({ length: 500 }, () => 'x') }, {}, many))),
    ).toHaveLength(20);
  });

  test('checked by an asynchronous schema are refused as a fault of the contract', () => {
    const asynchronous = actionOf({ input: z.object({ to: z.string().refine(async () => true) }) });
    expect(refusal(() => plan({ to: 'x' }, {}, asynchronous)).code).toBe('invalid_contract');
  });

  test('can not change the schema’s idea of them through __proto__ [S1.4]', () => {
    const args: unknown = JSON.parse('{"amount":1,"__proto__":{"to":"evil"}}');
    expect(refusal(() => plan(args)).code).toBe('invalid_arguments');
  });

  test('are named by pointers that stay short, however long a key is [S1.4]', () => {
    const long = 'k'.repeat(100_000);
    const of = (member: unknown) => ({ labels: { [long]: member } });
    const action = actionOf({
      input: z.object({ labels: z.record(z.string(), z.record(z.string(), z.int())) }),
    });
    const members = (value: unknown) => Object.fromEntries(['a', 'b', 'c', 'd'].map((key) => [key, value]));
    for (const wrong of ['x', Number.NaN])
      expect(
        JSON.stringify(refusal(() => plan(of(members(wrong)), {}, action)).toJSON()).length,
      ).toBeLessThan(10_000);
    const paths = differingPaths(of(members(1)) as Json, of(members(2)) as Json);
    expect(paths).toHaveLength(4);
    expect(paths.every((path) => path.startsWith('/labels/kkk') && path.length <= 500)).toBe(true);
  });

  test.each([
    ['a record', z.record(z.string(), z.json())],
    ['a loose object', z.looseObject({})],
    ['objects in a list', z.array(z.looseObject({}))],
  ])('lose no key named __proto__ in %s without a word [S1.4]', (_what, labels) => {
    const action = actionOf({ input: z.object({ labels }) });
    const of = (key: string): unknown => {
      const map = `{"a":"x","${key}":{"b":1}}`;
      return JSON.parse(`{"labels":${labels instanceof z.ZodArray ? `[${map}]` : map}}`);
    };
    const [issue] = issuesOf(refusal(() => plan(of('__proto__'), {}, action)));
    expect(issue).toMatchObject({ path: expect.stringMatching(/^\/labels(\/0)?\/__proto__$/) as string });
    expect(() => plan(of('constructor'), {}, action)).not.toThrow();
  });

  test('keep a key named __proto__ where their schema does [S1.4]', () => {
    const action = actionOf({ input: z.object({ labels: z.unknown() }) });
    const args: unknown = JSON.parse('{"labels":{"__proto__":{"b":1}}}');
    expect(() => plan(args, {}, action)).not.toThrow();
  });
});

describe('what else a plan refuses', () => {
  test('a key that is none [S1.2]', () => {
    expect(refusal(() => plan({ amount: 1 }, { key: '' })).code).toBe('invalid_key');
    expect(refusal(() => plan({ amount: 1 }, { key: 7 as never })).code).toBe('invalid_key');
  });

  test('a principal that is none', () => {
    for (const wrong of [
      undefined,
      {},
      { ...principal, tenant: '' },
      { ...principal, roles: 'buyer' },
      { ...principal, subject: 'a\0' },
    ]) {
      expect(refusal(() => plan({ amount: 1 }, { principal: wrong as never })).code).toBe(
        'invalid_arguments',
      );
    }
  });

  test('nothing that a person only has to approve: what is asked of whom is frozen into the plan [S4.5]', () => {
    const guarded = actionOf({
      approval: ({ amount }) => Number(amount) > 100 && { roles: ['buyer', 'chief'], expiresIn: '24h' },
    });
    expect(plan({ amount: 100 }, {}, guarded).plan).toMatchObject({ approval: null });
    expect(plan({ amount: 101 }, {}, guarded).plan).toMatchObject({
      inline: false,
      approval: { roles: ['buyer', 'chief'], quorum: 1, expiresInMs: 86_400_000, onExpiry: 'deny' },
    });
  });

  test('everything when the approval rule can not be evaluated: it fails closed [S4.5]', () => {
    const broken = actionOf({ approval: () => { throw new Error('policy server away'); } }); // prettier-ignore
    expect(refusal(() => plan({ amount: 1 }, {}, broken)).code).toBe('invalid_contract');
    for (const rule of [true, 'yes', [], Promise.resolve(false), { role: 'buyer' }]) {
      expect(refusal(() => plan({ amount: 1 }, {}, actionOf({ approval: () => rule as never }))).code).toBe(
        'invalid_contract',
      );
    }
  });
});

describe('sensitive arguments', () => {
  const hashKey = deriveHashKey(new Uint8Array(32).fill(1));
  const card = actionOf({
    input: z.object({ pin: sensitive(z.string().regex(/^\d{4}$/)), amount: z.int() }),
  });
  const pay = (pin: string, amount = 1, request: Partial<PlanRequest> = {}) =>
    plan({ pin, amount }, { hashKey, ...request }, card);

  test('reach the workflow whole and the row as keyed hashes only [S2.10]', () => {
    const { plan: frozen, input: validated, reservation } = pay('4321');
    expect(validated).toEqual({ pin: '4321', amount: 1 });
    expect(JSON.stringify([frozen, reservation])).not.toContain('4321');
    expect(frozen.sensitive.input).toEqual(['/pin']);
  });

  test('can not be guessed from a fingerprint without the key [S2.10]', () => {
    const { fingerprint } = pay('4321').plan;
    expect(fingerprint.input).not.toBe(fingerprintOf('acme', 'charge', { pin: '4321', amount: 1 }));
    expect(
      pay('4321', 1, { hashKey: deriveHashKey(new Uint8Array(32).fill(2)) }).plan.fingerprint,
    ).not.toEqual(fingerprint);
    expect(pay('4321').plan.fingerprint).toEqual(fingerprint);
    expect(pay('1234').plan.fingerprint).not.toEqual(fingerprint);
  });

  test('let a conflict name the differing paths, and nothing else (field case 9) [S2.1]', () => {
    const first = pay('4321', 10).reservation.arguments;
    expect(differingPaths(first, pay('4321', 1000).reservation.arguments)).toEqual(['/amount']);
    expect(differingPaths(first, pay('1111', 10).reservation.arguments)).toEqual(['/pin']);
    expect(differingPaths(first, pay('4321', 10).reservation.arguments)).toEqual([]);
  });

  test('are hashed apart for each tenant [S2.10]', () => {
    const other = pay('4321', 1, { principal: { ...principal, tenant: 'b' } }).reservation.arguments;
    expect(differingPaths(pay('4321').reservation.arguments, other)).toEqual(['/pin']);
  });

  test('are refused without a key to hash them with [S2.10]', () => {
    expect(refusal(() => pay('4321', 1, { hashKey: undefined })).code).toBe('encryption_key_required');
  });

  test('never turn up in the error that refuses them [S2.10]', () => {
    const talkative = actionOf({
      input: z
        .object({
          pin: sensitive(
            z.string().refine(() => false, { error: ({ input: pin }) => `not a pin: ${String(pin)}` }),
          ),
          amount: z.int(),
        })
        .superRefine(({ pin }, context) =>
          context.addIssue({ code: 'custom', message: `pin ${pin} is wrong`, path: ['amount'] }),
        ),
    });
    const error = refusal(() => plan({ pin: 'hunter2', amount: 1 }, { hashKey }, talkative));
    expect(issuesOf(error).map(({ path }) => path)).toContain('/pin');
    expect(JSON.stringify(error)).not.toContain('hunter2');
  });
});

describe('a result', () => {
  const secretive = actionOf({
    output: z.object({ id: z.string(), n: z.int().default(0), token: sensitive(z.string()).optional() }),
  });

  test('is parsed by the contract, defaults and all [M1.6]', () => {
    expect(checkResult(secretive.contract, { id: 'a' })).toEqual({ ok: true, result: { id: 'a', n: 0 } });
  });

  test('that does not fit is told apart, never thrown, and keeps its secrets [M1.6] [S2.10]', () => {
    expect(checkResult(secretive.contract, { id: 7 })).toMatchObject({
      ok: false,
      issues: [{ path: '/id', expected: 'string' }],
    });
    expect(checkResult(secretive.contract, { id: 'a', n: 2 ** 53 })).toMatchObject({
      ok: false,
      issues: [{ path: '/n' }],
    });
    expect(checkResult(secretive.contract, undefined)).toMatchObject({ ok: false, issues: [{ path: '' }] });
    expect(checkResult(secretive.contract, { id: 'a', token: 7 })).toEqual({
      ok: false,
      issues: [
        {
          path: '/token',
          message: 'does not fit the contract (sensitive field)',
          expected: 'see the published schema',
        },
      ],
    });
  });
});
