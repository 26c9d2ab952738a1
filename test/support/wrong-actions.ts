/**
 * Five actions that are wrong on purpose, each in one way that no happy path shows; the rehearsal must find every one
 * (S6.6). They speak to the fault target, like target-actions.ts.
 *
 * Kept wrong: whoever repairs one of them has broken a test.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  ActionFailure,
  applied,
  defineAction,
  fetchFailure,
  holds,
  implementAction,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/index.ts';
import type { LookContext } from '../../src/index.ts';
import { connectFaultTarget } from './fault-target.ts';
import type { Resource } from './fault-target-mode.ts';

interface Output {
  resourceId: string;
  value: string;
}

const shape = {
  version: 1,
  description: 'Puts a value, wrongly.',
  input: z.object({ value: z.string() }),
  output: z.object({ resourceId: z.string(), value: z.string() }),
  deadlines: { attempt: '3s', verify: '2s', run: '2m' },
  effect: 'conditional',
} as const;

/** By the target's own book. */
const count = (operationId: string): Promise<number> => connectFaultTarget(targetUrl()).count(operationId);
const rehearsal = { args: { value: 'v' }, count };

/** Says that somebody dedupes, and nobody does; and there is no look-up that could save it. */
export const wronglyConditional = implementAction(
  defineAction({ ...shape, name: 'wrongly_conditional', rollback: { kind: 'outOfBand' } }),
  {
    execute: ({ value }, context) => put('unsafe', context.operationId, value),
    verify: readBack,
    rehearsal,
  },
);

/** Believes every answer. */
export const wronglyVerified = implementAction(
  defineAction({ ...shape, name: 'wrongly_verified', rollback: { kind: 'outOfBand' } }),
  {
    execute: ({ value }, context) => put('conditional', context.operationId, value),
    lookup: askedByOperation,
    verify: () => Promise.resolve(verified()),
    rehearsal,
  },
);

/** Compensates as often as it is called: a refund for each attempt. */
export const wronglyUndone = implementAction(
  defineAction({ ...shape, name: 'wrongly_undone', rollback: { kind: 'compensate' }, onCancel: 'rollback' }),
  {
    execute: ({ value }, context) => put('conditional', context.operationId, value),
    lookup: askedByOperation,
    verify: readBack,
    rollback: async ({ value }, _result, { originalOperationId }) => {
      await put('unsafe', refundOf(originalOperationId), `-${value}`);
    },
    verifyRollback: async (_input, _result, { originalOperationId, signal }) => {
      const refund = await look(`/operations/${refundOf(originalOperationId)}`, signal);
      return typeof refund === 'object' ? verified() : mismatch('there is no refund');
    },
    rehearsal: { ...rehearsal, undone: (operationId) => count(refundOf(operationId)) },
  },
);

/** How the refunds of an operation are named at the target. */
const refundOf = (operationId: string): string => `refund-of-${operationId}`;

/** Sends a key of its own at each attempt (field case 3): the target dedupes, and is never given a reason to. */
export const wronglyKeyed = implementAction(
  defineAction({ ...shape, name: 'wrongly_keyed', rollback: { kind: 'outOfBand' } }),
  {
    execute: ({ value }, _context) => put('conditional', `${value}-${randomUUID()}`, value),
    lookup: askedByOperation,
    verify: readBack,
    rehearsal,
  },
);

/** Prepares when the approver is shown the call, and sends what it has prepared: an edit changes nothing (S4.2). */
const prepared = new Map<string, string>();
export const wronglyPrepared = implementAction(
  defineAction({
    ...shape,
    name: 'wrongly_prepared',
    rollback: { kind: 'outOfBand' },
    approval: () => ({ roles: ['keeper'] }),
  }),
  {
    precondition: async ({ value }, { operationId }) => {
      if (!prepared.has(operationId)) prepared.set(operationId, value);
      return holds();
    },
    execute: (_input, { operationId }) => put('conditional', operationId, prepared.get(operationId) ?? ''),
    lookup: askedByOperation,
    verify: async (_input, { resourceId }, { signal }) => {
      const found = await look(`/resources/${resourceId}`, signal);
      return typeof found === 'object' ? verified() : notYet();
    },
    rehearsal: { args: { value: 'v' }, edited: { value: 'w' }, count: countOfValue },
  },
);

/** By the target's own book, with this value. */
async function countOfValue(operationId: string, { args }: { args: { value: string } }): Promise<number> {
  const found = await look(`/operations/${operationId}`, AbortSignal.timeout(5_000));
  return typeof found === 'object' && found.value === args.value ? count(operationId) : 0;
}

export const wrongActions = [
  wronglyConditional,
  wronglyVerified,
  wronglyUndone,
  wronglyKeyed,
  wronglyPrepared,
];

async function put(endpoint: 'conditional' | 'unsafe', key: string, value: string): Promise<Output> {
  const response = await fetch(`${targetUrl()}/${endpoint}/put`, {
    method: 'POST',
    headers: { 'idempotency-key': key },
    body: JSON.stringify({ value }),
  });
  const failure = fetchFailure(response);
  if (failure) throw new ActionFailure(failure);
  return output((await response.json()) as Resource);
}

async function readBack({ value }: { value: string }, { resourceId }: Output, { signal }: LookContext) {
  const found = await look(`/resources/${resourceId}`, signal);
  if (found === 'unreadable') return notYet();
  return found !== 'absent' && found.value === value ? verified() : mismatch('the target has no such value');
}

async function askedByOperation({ operationId, signal }: LookContext) {
  const found = await look(`/operations/${operationId}`, signal);
  if (found === 'unreadable') return unknown();
  return found === 'absent' ? notApplied() : applied(output(found));
}

async function look(path: string, signal: AbortSignal): Promise<Resource | 'absent' | 'unreadable'> {
  const response = await fetch(targetUrl() + path, { signal });
  if (response.status === 404) return 'absent';
  return response.ok ? ((await response.json()) as Resource) : 'unreadable';
}

const output = ({ resourceId, value }: Resource): Output => ({ resourceId, value });
const targetUrl = (): string => process.env['HOLDFAST_TARGET_URL'] ?? '';
