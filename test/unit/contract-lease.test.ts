/** What a contract says about the resource its tasks hold (S8), and what of it a plan freezes. */
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import type { ActionDefinition } from '../../src/contract/define-action.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { verified } from '../../src/contract/handlers.ts';
import { leaseIdOf } from '../../src/contract/ids.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import { planOperation } from '../../src/contract/plan-operation.ts';
import { deriveHashKey } from '../../src/contract/redact.ts';
import { sensitive } from '../../src/contract/sensitive.ts';
import { attemptMsInAll } from '../../src/task/attempt-time.ts';

const input = z.object({ printer: z.string(), pin: sensitive(z.string()).optional() });
type Definition = ActionDefinition<typeof input, z.ZodObject>;

const define = (change: Partial<Definition> = {}) =>
  defineAction({
    name: 'print',
    version: 1,
    description: 'Prints.',
    input,
    output: z.object({}),
    effect: 'conditional',
    rollback: { kind: 'outOfBand' },
    deadlines: { attempt: '1s', verify: '500ms' },
    ...change,
  });

function planned(change: Partial<Definition>, args: object = { printer: 'p3' }, tenant = 'acme') {
  const action = implementAction(define(change), {
    execute: (_input, _context) => Promise.resolve({}),
    verify: () => Promise.resolve(verified()),
  });
  const principal = { tenant, subject: 'ann', roles: [] };
  const hashKey = deriveHashKey(new Uint8Array(32).fill(7));
  return planOperation(action, { args, principal, key: 'k', hashKey }).plan;
}

function defectOf(change: Partial<Definition>): string {
  try {
    define(change);
  } catch (error) {
    if (error instanceof HoldfastError) return error.message;
    throw error;
  }
  return '';
}

describe('an action that names a resource', () => {
  const resource: Definition['resource'] = ({ printer }) => (printer === '' ? null : `printer/${printer}`);

  test('freezes what it holds, of its own tenant, and never runs inline [S8.1][S2.13]', () => {
    expect(planned({}).lease).toBeUndefined();
    expect(planned({}).inline).toBe(true);
    const { lease, inline } = planned({ resource });
    expect(lease).toMatchObject({ id: leaseIdOf('acme', 'printer/p3'), resource: 'printer/p3' });
    expect(inline).toBe(false);
    expect(planned({ resource }, { printer: 'p3' }, 'other').lease?.id).not.toBe(lease?.id);
    expect(planned({ resource }, { printer: '' }).lease).toBeUndefined();
  });

  test('holds it longer than any attempt of it may last [S8.1]', () => {
    const { lease, deadlines } = planned({ resource });
    expect(lease?.leaseMs).toBeGreaterThan(attemptMsInAll(deadlines, false));
    expect(planned({ resource, lease: '10m' }).lease?.leaseMs).toBe(600_000);
    expect(defectOf({ resource, lease: '12s' })).toContain('shorter than one attempt in all (12500 ms)');
    expect(defectOf({ resource, lease: '4d' })).toContain('lease: write a duration of 1 to 259200000 ms');
    expect(defectOf({ lease: '10m' })).toContain('no resource says what is held');
  });

  test('is given a sensitive field as its keyed hash, so that no secret becomes a name [S2.10]', () => {
    const byPin: Definition['resource'] = ({ pin }) => `safe/${pin ?? ''}`;
    const named = (pin: string) => planned({ resource: byPin }, { printer: 'p3', pin }).lease?.resource;
    expect(named('4711-0815')).not.toContain('4711');
    expect(named('4711-0815')).toMatch(/^safe\/hmac-sha256:/);
    expect(named('4711-0815')).toBe(named('4711-0815'));
    expect(named('4711-0816')).not.toBe(named('4711-0815'));
  });

  test.each([
    ['an empty name', () => ''],
    ['a name that is too long', () => 'x'.repeat(256)],
    ['half a character', () => '\ud800'],
    ['U+0000', () => 'a\0b'],
    ['a promise', () => Promise.resolve('x') as never],
    ['nothing', () => undefined as never],
    ['an exception', () => { throw new Error('4711') }], // prettier-ignore
  ])('that answers %s lets nothing run [S8.1]', (_what, wrong: () => string) => {
    expect(() => planned({ resource: wrong })).toThrow(
      expect.objectContaining({
        code: 'invalid_contract',
        message: expect.stringContaining('resource of print'),
      }),
    );
  });
});
