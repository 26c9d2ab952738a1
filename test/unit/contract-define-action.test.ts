import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { applied, verified } from '../../src/contract/handlers.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import { sensitive } from '../../src/contract/sensitive.ts';

const base = {
  name: 'charge',
  version: 1,
  description: 'Charges a card.',
  input: z.object({ amount: z.int() }),
  output: z.object({ id: z.string() }),
  effect: 'conditional',
  rollback: { kind: 'inBand' },
} as const;

/** The defects as `field: message` lines. Definitions are wrong on purpose, so they are not typed. */
function defectsOf(make: () => unknown): string[] {
  try {
    make();
    return [];
  } catch (error) {
    if (!(error instanceof HoldfastError) || error.code !== 'invalid_contract') throw error;
    return (error.details['issues'] as { field: string; message: string }[]).map(
      ({ field, message }) => `${field}: ${message}`,
    );
  }
}
const defects = (change: object) => defectsOf(() => defineAction({ ...base, ...change }));

describe('a contract', () => {
  test('gets every default, and durations as milliseconds [S5.3]', () => {
    const contract = defineAction({
      ...base,
      deadlines: { attempt: '250ms', verify: '0s', run: '7d', settle: '1.5h', sla: '2d' },
    });
    expect(contract).toMatchObject({
      deadlines: {
        attemptMs: 250,
        verifyMs: 0,
        runMs: 604_800_000,
        settleMs: 5_400_000,
        heartbeatMs: 5_000,
        slaMs: 172_800_000,
      },
      retry: { maximumRetries: 5, initialIntervalMs: 1_000, maximumIntervalMs: 60_000 },
      onCancel: 'keep',
      cancelAttempt: 'finish',
      transactional: false,
      ledger: 'required',
      attach: true,
      onAbandon: 'continue',
      lookup: null,
      inline: 'auto',
      noVerify: null,
      sensitive: { input: [], output: [] },
    });
    expect(defineAction({ ...base, deadlines: { attempt: 1 } }).deadlines.attemptMs).toBe(1);
  });

  test('is frozen, so nobody changes a promise after it was checked', () => {
    const contract = defineAction(base);
    expect(() => Object.assign(contract, { effect: 'safe' })).toThrow(TypeError);
    expect(() => Object.assign(contract.deadlines, { attemptMs: 1 })).toThrow(TypeError);
  });

  test('of a safe action needs no rollback, no verify and no reason for either [S2.6] [S6.1]', () => {
    const contract = defineAction({ ...base, effect: 'safe', rollback: undefined as never });
    expect(contract.rollback.kind).toBe('none');
    expect(contract.noVerify).not.toBeNull();
  });

  test.each([
    [{ name: 'a b' }, 'name: 1 to 64 characters of A–Z, a–z, 0–9, _ and -'],
    [{ name: 'x'.repeat(65) }, 'name: 1 to 64 characters of A–Z, a–z, 0–9, _ and -'],
    [{ name: undefined }, 'name: write the tool’s name'],
    [{ version: 0 }, 'version: write a whole number from 1'],
    [{ version: 1.5 }, 'version: write a whole number from 1'],
    [{ description: ' ' }, 'description: write what the action does'],
    [{ input: z.string() }, 'input: write a z.object({…})'],
    [{ input: { amount: 1 } }, 'input: write a z.object({…})'],
    [{ output: 'text' }, 'output: write a zod 4 schema'],
    [{ effect: 'idempotent' }, "effect: write one of 'safe', 'conditional', 'unsafe'"],
    [{ retries: 3 }, '(definition): unknown: retries'],
    [{ deadlines: { atempt: '1s' } }, 'deadlines: unknown: atempt'],
    [{ onCancel: 'maybe' }, "onCancel: write one of 'keep', 'rollback'"],
    [{ approval: { roles: ['buyer'] } }, 'approval: write a function'],
    [{ retry: { maximumRetries: 1001 } }, 'retry.maximumRetries: write a whole number from 0 to 1000'],
    [{ verify: { none: '' } }, 'verify.none: write why'],
  ])('%j is refused, naming field and bound', (change, expected) => {
    expect(defects(change)).toEqual([expect.stringContaining(expected)]);
  });

  test.each([
    '10',
    '10 s',
    '-1s',
    '1w',
    '',
    's',
    '1e3s',
    '0.3ms',
    '25h',
    0,
    -1,
    1.5,
    Number.NaN,
    Infinity,
    null,
    {},
  ])('an attempt deadline of %j is refused with its bounds and a form to write [S5.3]', (attempt) => {
    const [defect] = defects({ deadlines: { attempt, run: '2d' } });
    expect(defect).toContain('deadlines.attempt: write a duration of 1 to 86400000 ms');
  });

  test.each([
    [{ rollback: undefined }, 'rollback: say how the effect is undone'],
    [{ rollback: { kind: 'none' } }, "rollback.reason: rollback 'none' needs a reason"],
    [{ effect: 'safe' }, 'rollback.kind: a safe action has nothing to undo'],
    [{ rollback: { kind: 'outOfBand' }, onCancel: 'rollback' }, "onCancel: 'rollback' needs rollback.kind"],
    [
      { deadlines: { attempt: '10s', run: '9s' } },
      'deadlines.run: 9000 ms is shorter than one attempt (10000 ms)',
    ],
    [
      { retry: { initialInterval: '2s', maximumInterval: '1s' } },
      'retry.maximumInterval: 1000 ms is shorter',
    ],
    [{ ledger: 'optional' }, "ledger: 'optional' is for safe actions"],
    [{ transactional: true, effect: 'unsafe' }, 'effect: the ledger itself dedupes'],
    [{ transactional: true, deadlines: { attempt: '1001ms' } }, 'deadlines.attempt: a transactional action'],
    [
      { transactional: true, deadlines: { attempt: '1s', verify: '1001ms' } },
      'deadlines.verify: a transactional',
    ],
  ])('%j contradicts itself and says how to mend it', (change, expected) => {
    expect(defects(change)).toContainEqual(expect.stringContaining(expected));
  });

  test('whose attempt is shorter than the tool’s own timeout is refused (field case 4) [S5.3]', () => {
    expect(defects({ deadlines: { attempt: '10s', tool: '11s' } })).toEqual([
      "deadlines.attempt: 10000 ms is shorter than the tool's own timeout of 11000 ms: lengthen it to 11000 ms or more",
    ]);
    expect(defects({ deadlines: { attempt: '11s', tool: '11s' } })).toEqual([]);
  });

  test('names every defect at once', () => {
    expect(defects({ rollback: { kind: 'none' }, onCancel: 'rollback', ledger: 'optional' })).toHaveLength(3);
  });

  test('whose input has an idempotencyKey of its own is refused [M1.3]', () => {
    const [defect] = defects({ input: z.object({ idempotencyKey: z.string() }) });
    expect(defect).toContain('input.idempotencyKey: the name is Holdfast');
  });

  test.each([
    ['input.when', { input: z.object({ when: z.date() }) }],
    ['input.list.items.n', { input: z.object({ list: z.array(z.object({ n: z.bigint() })) }) }],
    ['input.m', { input: z.object({ m: z.map(z.string(), z.number()) }) }],
    [
      'input.when',
      {
        input: z.object({
          when: z.codec(z.iso.datetime(), z.date(), {
            decode: (s) => new Date(s),
            encode: (d) => d.toISOString(),
          }),
        }),
      },
    ],
    ['output.at', { output: z.object({ at: z.date() }) }],
    ['output', { output: z.object({ a: z.string() }).transform(({ a }) => a) }],
  ])('refuses %s, which can not travel as JSON [S1.4]', (field, change) => {
    expect(defects(change).join()).toContain(`${field}`);
    expect(defects(change).join()).toContain('has no JSON form');
  });

  test('refuses a catch in its input, wherever it is: it acts on what nobody sent [M1.1]', () => {
    for (const [field, input] of [
      ['input.a', z.object({ a: z.int().catch(0) })],
      ['input.list.items.b', z.object({ list: z.array(z.object({ b: z.string().catch('').optional() })) })],
    ] as const)
      expect(defects({ input }).join()).toContain(`${field}: z.catch`);
  });

  test('takes transforms, refinements, unions, records and recursion in its input [M1.1]', () => {
    const tree = z.object({ get children(): z.ZodOptional<z.ZodArray<typeof tree>> { return z.array(tree).optional(); } }); // prettier-ignore
    const input = z
      .object({ text: z.string().transform((text) => text.length), either: z.union([z.int(), z.string()]), map: z.record(z.string(), z.int()), tree })
      .refine(() => true); // prettier-ignore
    expect(defects({ input })).toEqual([]);
  });
});

const handlers = { execute: async (_input: { amount: number }, _context: unknown) => ({ id: 'x' }) };
const lookup = async () => applied({ id: 'x' });
const verify = async () => verified();
const rollback = async () => undefined;
const verifyRollback = verify;
const pairing = (change: object, given: object) =>
  defectsOf(() => implementAction(defineAction({ ...base, ...change }), given as never));

describe('a contract with its handlers', () => {
  test('keeps what is promised and nothing is wrong', () => {
    expect(pairing({}, { ...handlers, verify, rollback, verifyRollback })).toEqual([]);
    expect(pairing({ lookup: 'conclusive' }, { ...handlers, verify, rollback, lookup })).toEqual([]);
    expect(
      pairing(
        { verify: { none: 'the target shows nothing' } },
        { ...handlers, rollback, verifyRollback, lookup },
      ),
    ).toEqual([]);
    expect(pairing({ effect: 'safe', rollback: undefined }, { execute: async () => ({ id: 'x' }) })).toEqual(
      [],
    );
  });

  test.each([
    [{}, { verify, rollback, verifyRollback, lookup }, 'handlers.execute: missing'],
    [{}, { ...handlers, rollback, verifyRollback, lookup }, 'handlers.verify: missing'],
    [
      { verify: { none: 'why' } },
      { ...handlers, verify, rollback, verifyRollback, lookup },
      'verify.none: the contract says',
    ],
    [{}, { ...handlers, verify, lookup }, "handlers.rollback: missing: rollback.kind 'inBand' needs it"],
    [
      { rollback: { kind: 'compensate' } },
      { ...handlers, verify, lookup },
      "handlers.rollback: missing: rollback.kind 'compensate'",
    ],
    [
      { rollback: { kind: 'outOfBand' } },
      { ...handlers, verify, rollback },
      "rollback.kind: 'outOfBand' never calls",
    ],
    [{}, { ...handlers, verify, rollback }, 'handlers.verifyRollback: missing'],
    [{}, { ...handlers, verify, rollback, lookup }, 'handlers.verifyRollback: missing'],
    [{ lookup: 'conclusive' }, { ...handlers, verify, rollback, verifyRollback }, 'handlers.lookup: missing'],
    [{}, { ...handlers, verify, rollback, verifyRollback, lookup, undo: rollback }, 'handlers.undo: unknown'],
    [
      {},
      { ...handlers, verify, rollback, verifyRollback, lookup: 'yes' },
      'handlers.lookup: write an async function',
    ],
  ])('%j refuses handlers that can not keep it', (change, given, expected) => {
    expect(pairing(change, given)).toContainEqual(expect.stringContaining(expected));
  });

  test('a conditional execute that can not forward the operationId is refused at startup (field case 3) [S1.3]', () => {
    const forgets = { verify, rollback, verifyRollback, lookup };
    for (const execute of [
      async () => ({ id: 'x' }),
      async (_input: unknown) => ({ id: 'x' }),
      async function (_input: unknown) {
        return { id: 'x' };
      },
    ]) {
      // prettier-ignore
      expect(pairing({}, { ...forgets, execute })).toEqual([expect.stringContaining("can't pass context.operationId on")]);
      expect(pairing({ effect: 'unsafe' }, { ...forgets, execute })).toEqual([]);
      expect(pairing({ transactional: true }, { ...forgets, execute })).toEqual([]);
    }
    for (const execute of [
      handlers.execute,
      async (...all: unknown[]) => all,
      async (_input: unknown, context = {}) => context,
    ]) {
      expect(pairing({}, { ...forgets, execute })).toEqual([]);
    }
  });

  test('types its handlers from the schemas', () => {
    const contract = defineAction({
      ...base,
      lookup: 'conclusive',
      input: z.object({ amount: z.int().default(1), note: sensitive(z.string()).optional() }),
    });
    const action = implementAction(contract, {
      execute: async ({ amount, note }, { operationId }) => ({
        id: `${operationId}${amount.toFixed(0)}${note?.length ?? 0}`,
      }),
      lookup: async ({ input }) => applied({ id: String(input.amount) }),
      verify: async (_input, { id }) => (id.startsWith('op_') ? verified() : verified()),
      // @ts-expect-error the result has no such member
      rollback: async (_input, { identifier }) => void identifier,
    });
    expect(action.contract.sensitive.input).toEqual(['/note']);
  });
});
