/**
 * The actions of the crash tests: those of target-actions.ts with contracts that notice a dead worker within moments,
 * and some that misbehave on purpose. They speak to the fault target in HOLDFAST_TARGET_URL.
 */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import { z } from 'zod';
import {
  ActionFailure,
  applied,
  defineAction,
  fails,
  fetchFailure,
  holds,
  implementAction,
  mismatch,
  notApplied,
  sensitive,
  verified,
} from '../../src/index.ts';
import type { Action, ExecuteContext, LookContext } from '../../src/index.ts';
import type { Resource } from './fault-target-mode.ts';
import { targetActions, targetConditional } from './target-actions.ts';

/** Noticing a death takes this long; a worker on a machine under load must still be heard within it. */
const HEARTBEAT_MS = 2_000;
/** A conclusive look-up waits until the dead attempt's own deadline has passed, so it is short. */
const ATTEMPT_MS = 4_000;

/** The same promise, kept in less time. Inline contracts keep their own, tighter deadlines. */
function quick({ contract, handlers }: Action): Action {
  const { attemptMs, verifyMs } = contract.deadlines;
  const isInline = attemptMs <= 1_000;
  const deadlines = {
    ...contract.deadlines,
    ...(isInline ? { attemptMs, verifyMs } : { attemptMs: ATTEMPT_MS, verifyMs: 5_000 }),
    heartbeatMs: HEARTBEAT_MS,
    settleMs: 200,
  };
  return { contract: { ...contract, deadlines }, handlers };
}

const terms = {
  version: 1,
  output: z.object({ resourceId: z.string(), value: z.string() }),
  deadlines: {
    attempt: ATTEMPT_MS,
    verify: '5s',
    run: '2m',
    settle: '200ms',
    heartbeat: HEARTBEAT_MS,
  },
  retry: { maximumRetries: 5, initialInterval: '50ms', maximumInterval: '500ms' },
  inline: false,
} as const;

/** What the target was given stands there as `value`; handlers get the request's body, not more. */
async function put(
  endpoint: 'conditional' | 'unsafe',
  value: string,
  { operationId, fence }: ExecuteContext,
  signal: AbortSignal | null,
) {
  const response = await fetch(`${targetUrl()}/${endpoint}/put`, {
    method: 'POST',
    headers: { 'idempotency-key': operationId, 'x-fence': fence },
    body: JSON.stringify({ value }),
    signal,
  });
  const failure = fetchFailure(response);
  if (failure) throw new ActionFailure(failure);
  const { resourceId, value: stored } = (await response.json()) as Resource;
  return { resourceId, value: stored };
}

async function lookup({ operationId, signal }: LookContext) {
  const response = await fetch(`${targetUrl()}/operations/${operationId}`, { signal });
  if (response.status === 404) return notApplied();
  const { resourceId, value } = (await response.json()) as Resource;
  return applied({ resourceId, value });
}

const unverified = { verify: { none: 'the fault target is asked by other actions' } };
const standing = { rollback: { kind: 'outOfBand' } } as const;

/** A handler that hears no signal: it sends when it wakes, however late. */
function stubborn(name: string, effect: 'conditional' | 'unsafe'): Action {
  return implementAction(
    defineAction({
      ...terms,
      ...unverified,
      ...standing,
      name,
      description: 'Sends whatever its signal says.',
      input: z.object({ value: z.string() }),
      effect,
      lookup: 'conclusive',
    }),
    {
      async execute({ value }, context) {
        await beforeSending(context);
        return put(effect, value, context, null);
      },
      lookup,
    },
  );
}

/** On a resource that one task at a time may work on, whose store keeps the highest fence it has seen (fenced-store.ts). */
const leased = implementAction(
  defineAction({
    ...terms,
    ...unverified,
    ...standing,
    name: 'target_leased',
    description: 'Writes to a store that is told the lease’s fence, whatever its signal says.',
    input: z.object({ value: z.string() }),
    effect: 'conditional',
    resource: ({ value }) => value,
  }),
  {
    async execute({ value }, context) {
      await beforeSending(context);
      const { operationId, lease } = context;
      const response = await fetch(`${process.env['HOLDFAST_FENCED_URL']}/${operationId}`, {
        method: 'POST',
        body: JSON.stringify({ value, fence: lease?.fence }),
      });
      if (!response.ok) throw new Error('the store has seen a newer fence');
      return { resourceId: operationId, value };
    },
    async lookup({ operationId, input: { value } }) {
      const { status } = await fetch(`${process.env['HOLDFAST_FENCED_URL']}/${operationId}`);
      return status === 200 ? applied({ resourceId: operationId, value }) : notApplied();
    },
  },
);

/** Set by worker-process.ts: where a handler stands between its claim and its first byte. */
let beforeSending: (context: ExecuteContext) => Promise<void> = () => Promise.resolve();
export function onSending(hook: typeof beforeSending): void {
  beforeSending = hook;
}

/** Holds only while the target has the resource `requires`. */
const guarded = implementAction(
  defineAction({
    ...terms,
    ...unverified,
    ...standing,
    name: 'target_guarded',
    description: 'Puts a value if another one is there.',
    input: z.object({ value: z.string(), requires: z.string() }),
    effect: 'conditional',
  }),
  {
    async precondition({ requires }, { signal }) {
      const response = await fetch(`${targetUrl()}/resources/${requires}`, { signal });
      return response.ok ? holds() : fails(`there is no resource ${requires}`);
    },
    execute: ({ value }, context) => put('conditional', value, context, context.signal),
    lookup,
  },
);

/** Any JSON as arguments; the target keeps them as text. */
const anything = implementAction(
  defineAction({
    ...terms,
    ...unverified,
    ...standing,
    name: 'target_any',
    description: 'Puts whatever it is given.',
    input: z.looseObject({}),
    effect: 'conditional',
  }),
  {
    execute: (input, context) =>
      put('conditional', JSON.stringify(input).slice(0, 1_000), context, context.signal),
    lookup,
  },
);

/** Answers `bytes` characters, after one effect. */
const large = implementAction(
  defineAction({
    ...terms,
    ...unverified,
    ...standing,
    name: 'target_large',
    description: 'Puts a value and answers at length.',
    input: z.object({ value: z.string(), bytes: z.int() }),
    output: z.object({ text: z.string() }),
    effect: 'conditional',
    deadlines: { ...terms.deadlines, attempt: '10s' },
  }),
  {
    async execute({ value, bytes }, context) {
      await put('conditional', value, context, context.signal);
      return { text: 'x'.repeat(bytes) };
    },
  },
);

/** A secret goes in and another one comes out; `complain` makes a handler say both where people may read it. */
const secretive = implementAction(
  defineAction({
    ...terms,
    ...standing,
    name: 'target_secret',
    description: 'Takes a secret and answers one.',
    input: z.object({
      value: z.string(),
      password: sensitive(z.string()),
      complain: z.enum(['no', 'refuse', 'throw', 'mismatch']),
    }),
    output: z.object({ resourceId: z.string(), token: sensitive(z.string()) }),
    effect: 'conditional',
  }),
  {
    async execute({ value, password, complain }, context) {
      const message = `wrong: ${password} (${JSON.stringify({ password })})`;
      if (complain === 'refuse') throw new ActionFailure({ kind: 'permanent', code: 'denied', message });
      if (complain === 'throw') throw new Error(message);
      const { resourceId } = await put('conditional', value, context, context.signal);
      return { resourceId, token: `${password}-token` };
    },
    async verify({ password, complain }, { token }) {
      return complain === 'mismatch' ? mismatch(`the token of ${password} is ${token}`) : verified();
    },
  },
);

/** S2.8: its effect is a row of the ledger's own database; `beforeSending` stands between effect and commit. */
const transactional = implementAction(
  defineAction({
    ...terms,
    ...standing,
    name: 'ledger_row',
    description: 'Puts a row into the ledger’s database.',
    input: z.object({ value: z.string() }),
    effect: 'conditional',
    transactional: true,
    deadlines: { attempt: '1s', verify: '1s', run: '2m', settle: '200ms', heartbeat: HEARTBEAT_MS },
  }),
  {
    async execute({ value }, { operationId, tx }) {
      await sql`insert into fault_effect (operation_id, value) values (${operationId}, ${value})`.execute(
        db(tx),
      );
      return { resourceId: operationId, value };
    },
    async verify({ value }, _result, { operationId, tx }) {
      const found = await sql<{
        value: string;
      }>`select value from fault_effect where operation_id = ${operationId}`.execute(db(tx));
      return found.rows.length === 1 && found.rows[0]?.value === value ? verified() : mismatch('no such row');
    },
  },
);

const db = (tx: unknown) => tx as Kysely<unknown>;

/** The table of `ledger_row`. No key, so that it would count an effect as often as it took place. */
export async function createEffectTable(tx: unknown): Promise<void> {
  await sql`create table if not exists fault_effect (operation_id text not null, value text not null)`.execute(
    db(tx),
  );
}

export async function countEffectRows(tx: unknown, operationId: string): Promise<number> {
  const { rows } = await sql<{
    n: number | string;
  }>`select count(*) as n from fault_effect where operation_id = ${operationId}`.execute(db(tx));
  return Number(rows[0]?.n);
}

/** A read that its contract lets run while the ledger is away (field case 16). */
const optionalRead = implementAction(
  defineAction({
    name: 'target_read_anyway',
    version: 1,
    description: 'Reads a value, ledger or not.',
    input: z.object({ resourceId: z.string() }),
    output: z.object({ found: z.boolean() }),
    effect: 'safe',
    ledger: 'optional',
    deadlines: terms.deadlines,
    inline: false,
  }),
  {
    async execute({ resourceId }, { signal }) {
      return { found: (await fetch(`${targetUrl()}/resources/${resourceId}`, { signal })).ok };
    },
  },
);

/** A model: counts how often it was asked, and says something else each time. */
const model = implementAction(
  defineAction({
    ...terms,
    name: 'target_model',
    description: 'Asks a model.',
    input: z.object({}),
    output: z.object({ answer: z.string() }),
    effect: 'safe',
  }),
  {
    async execute(_input, context) {
      return { answer: (await put('unsafe', 'advice', context, context.signal)).resourceId };
    },
  },
);

/** Those that need an encryption key only where there is one. */
/** As `target_conditional`, once a person said yes, over MCP too. */
function approved({ contract, handlers }: Action): Action {
  const approval = () => ({ requesterMayDecide: true, mayAnswerOverMcp: true });
  return { contract: { ...contract, name: 'target_approved', approval }, handlers };
}

/** As `target_conditional`, but a cancel lets the attempt finish and undoes what it did. */
function undone({ contract, handlers }: Action): Action {
  return { contract: { ...contract, name: 'target_undone', onCancel: 'rollback' }, handlers };
}

export function faultActions({ withSecrets }: { withSecrets: boolean }): Action[] {
  return [
    ...targetActions.map((action) => quick(action as unknown as Action)),
    ...[leased, guarded, anything, large, transactional, optionalRead, model].map(
      (action) => action as unknown as Action,
    ),
    approved(quick(targetConditional)),
    undone(quick(targetConditional)),
    ...(withSecrets ? [secretive as unknown as Action] : []),
    stubborn('target_stubborn', 'conditional'),
    stubborn('target_stubborn_unsafe', 'unsafe'),
  ];
}

function targetUrl(): string {
  const url = process.env['HOLDFAST_TARGET_URL'];
  if (url === undefined)
    throw new Error('HOLDFAST_TARGET_URL is not set: start a fault target (fault-target.ts)');
  return url;
}
