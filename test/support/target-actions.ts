/**
 * Ready-made actions on the fault target, one for each way an effect can be promised. They speak to the URL in
 * HOLDFAST_TARGET_URL, read at each call, so that they work in the test's own process and in workers of their own.
 *
 * Input `{value}`, output `{resourceId, value}`; `target_safe` reads: input `{resourceId}`, output `{found, value}`.
 */
import { z } from 'zod';
import {
  ActionFailure,
  applied,
  defineAction,
  fetchFailure,
  implementAction,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/index.ts';
import type { ActionHandlers, ExecuteContext, LookContext } from '../../src/index.ts';
import type { Resource } from './fault-target-mode.ts';

interface Input {
  value: string;
}
interface Output {
  resourceId: string;
  value: string;
}

const shape = {
  version: 1,
  input: z.object({ value: z.string() }),
  output: z.object({ resourceId: z.string(), value: z.string() }),
  deadlines: { attempt: '3s', verify: '5s', run: '2m', settle: '500ms' },
  retry: { maximumRetries: 5, initialInterval: '50ms', maximumInterval: '500ms' },
  inline: false,
} as const;

const undoing = {
  async rollback(_input: Input, { resourceId }: Output, context: ExecuteContext) {
    await post(`/resources/${resourceId}/undo`, {}, context);
  },
  async verifyRollback(_input: Input, { resourceId }: Output, { signal }: LookContext) {
    const found = await look(`/resources/${resourceId}`, signal);
    if (found === 'unreadable') return notYet('the target could not be read');
    return found !== 'absent' && found.undone ? verified() : mismatch('the resource stands');
  },
};

/** The provider dedupes by operationId; an absent resource is a broken promise; cancel keeps what was done. */
export const targetConditional = implementAction(
  defineAction({
    ...shape,
    name: 'target_conditional',
    description: 'Puts a value; the target dedupes.',
    effect: 'conditional',
    rollback: { kind: 'inBand' },
  }),
  { ...handlers('conditional'), lookup, ...undoing },
);

/** As before; cancel aborts a running attempt and undoes what was done. */
export const targetAbortable = implementAction(
  defineAction({
    ...shape,
    name: 'target_abortable',
    description: 'Puts a value; a cancel aborts and undoes.',
    effect: 'conditional',
    rollback: { kind: 'inBand' },
    onCancel: 'rollback',
    cancelAttempt: 'abort',
  }),
  { ...handlers('conditional'), lookup, ...undoing },
);

/** The target shows its effects late: absent means "not yet" until the verify deadline. */
export const targetEventual = implementAction(
  defineAction({
    ...shape,
    name: 'target_eventual',
    description: 'Puts a value; the target shows it late.',
    effect: 'conditional',
    rollback: { kind: 'inBand' },
  }),
  { ...handlers('conditional', () => notYet('not shown yet')), lookup, ...undoing },
);

/** Nobody dedupes and nobody can be asked: an unknown outcome is a person's. */
export const targetUnsafe = implementAction(
  defineAction({
    ...shape,
    name: 'target_unsafe',
    description: 'Puts a value, twice if asked twice.',
    effect: 'unsafe',
    rollback: { kind: 'outOfBand' },
  }),
  handlers('unsafe'),
);

/** Nobody dedupes, but the target can be asked, and its "no" is final once the attempt and `settle` have passed. */
export const targetUnsafeLookup = implementAction(
  defineAction({
    ...shape,
    name: 'target_unsafe_lookup',
    description: 'Puts a value, twice if asked twice; the target can be asked.',
    effect: 'unsafe',
    rollback: { kind: 'inBand' },
    lookup: 'conclusive',
  }),
  { ...handlers('unsafe'), lookup, ...undoing },
);

/** Short enough to run inside the first workflow task (S2.13). */
export const targetInline = implementAction(
  defineAction({
    ...shape,
    name: 'target_inline',
    description: 'Puts a value, inline.',
    effect: 'conditional',
    rollback: { kind: 'inBand' },
    deadlines: { ...shape.deadlines, attempt: '1s', verify: '1s' },
    inline: 'auto',
  }),
  { ...handlers('conditional'), lookup, ...undoing },
);

const reading = {
  version: 1,
  input: z.object({ resourceId: z.string() }),
  output: z.object({ found: z.boolean(), value: z.string() }),
  effect: 'safe',
  retry: shape.retry,
} as const;

export const targetSafe = implementAction(
  defineAction({
    ...reading,
    name: 'target_safe',
    description: 'Reads a value.',
    deadlines: shape.deadlines,
    inline: false,
  }),
  { execute: readResource },
);

export const targetInlineSafe = implementAction(
  defineAction({
    ...reading,
    name: 'target_inline_safe',
    description: 'Reads a value, inline.',
    deadlines: { attempt: '1s', verify: '1s', run: '2m' },
  }),
  { execute: readResource },
);

/** All of them, for a worker's configuration. */
export const targetActions = [
  targetConditional,
  targetAbortable,
  targetEventual,
  targetUnsafe,
  targetUnsafeLookup,
  targetInline,
  targetSafe,
  targetInlineSafe,
];

function handlers(
  endpoint: 'conditional' | 'unsafe',
  absent = () => mismatch('the target has no such resource'),
) {
  return {
    async execute(input: Input, context: ExecuteContext): Promise<Output> {
      return output((await post(`/${endpoint}/put`, input, context)) as Resource);
    },
    async verify({ value }: Input, { resourceId }: Output, { signal }: LookContext) {
      const found = await look(`/resources/${resourceId}`, signal);
      if (found === 'unreadable') return notYet('the target could not be read');
      if (found === 'absent') return absent();
      return found.value === value && !found.undone
        ? verified()
        : mismatch(`the target holds ${found.value}`);
    },
  } satisfies Partial<ActionHandlers<Input, Output>>;
}

async function lookup({ operationId, signal }: LookContext) {
  const found = await look(`/operations/${operationId}`, signal);
  if (found === 'unreadable') return unknown('the target could not be asked');
  return found === 'absent' ? notApplied() : applied(output(found));
}

async function readResource({ resourceId }: { resourceId: string }, { signal }: ExecuteContext) {
  const response = await fetch(`${targetUrl()}/resources/${resourceId}`, { signal });
  if (response.status === 404) return { found: false, value: '' };
  const failure = fetchFailure(response);
  if (failure) throw new ActionFailure(failure);
  return { found: true, value: ((await response.json()) as Resource).value };
}

async function post(
  path: string,
  body: object,
  { operationId, fence, signal }: ExecuteContext,
): Promise<unknown> {
  const headers = { 'idempotency-key': operationId, 'x-fence': fence };
  const response = await fetch(targetUrl() + path, {
    method: 'POST',
    headers,
    body: JSON.stringify(body),
    signal,
  });
  const failure = fetchFailure(response);
  if (failure) throw new ActionFailure(failure);
  return response.json();
}

async function look(path: string, signal: AbortSignal): Promise<Resource | 'absent' | 'unreadable'> {
  try {
    const response = await fetch(targetUrl() + path, { signal });
    if (response.status === 404) return 'absent';
    return response.ok ? ((await response.json()) as Resource) : 'unreadable';
  } catch {
    return 'unreadable';
  }
}

function output({ resourceId, value }: Resource): Output {
  return { resourceId, value };
}

function targetUrl(): string {
  const url = process.env['HOLDFAST_TARGET_URL'];
  if (url === undefined)
    throw new Error('HOLDFAST_TARGET_URL is not set: start a fault target (fault-target.ts)');
  return url;
}
