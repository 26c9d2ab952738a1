/**
 * One operation under test: a real ledger, a target, a contract with the handlers a test is about, and attempts at it.
 * Attempts are numbered as the workflow numbers them.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect } from 'vitest';
import { z } from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import type { ActionDefinition } from '../../src/contract/define-action.ts';
import { applied, notApplied } from '../../src/contract/handlers.ts';
import type { ActionHandlers, ExecuteContext } from '../../src/contract/handlers.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import type { Action } from '../../src/contract/implement-action.ts';
import { planOperation } from '../../src/contract/plan-operation.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import type { Ledger, OperationRow } from '../../src/ledger/ledger.ts';
import type { OperationDeps } from '../../src/operation/deps.ts';
import { performOperation } from '../../src/operation/perform-operation.ts';
import { rollbackOperation } from '../../src/operation/rollback-operation.ts';
import type { AttemptRequest, RollbackRequest } from '../../src/task/activity-api.ts';
import type { OperationOutcome, RollbackOutcome } from '../../src/task/outcome.ts';
import type { Plan } from '../../src/task/plan.ts';
import { Target } from './operation-target.ts';
import type { PlanOverrides } from './plans.ts';
import { createTestDatabase } from './postgres.ts';

export interface Input {
  amount: number;
}
export interface Output {
  id: string;
  amount: number;
}

export type Handlers = Partial<ActionHandlers<Input, Output>>;

export interface OperationSpec {
  effect?: 'safe' | 'conditional' | 'unsafe';
  /** Null: keyless. Default: a key of its own. */
  key?: string | null;
  input?: Input;
  lookup?: 'plain' | 'conclusive';
  /** Default: executes at the target; no precondition, lookup, verify or rollback. */
  handlers?: Handlers;
  definition?: Partial<ActionDefinition<z.ZodObject, z.ZodType>>;
  /** Changed after planning, so that tests may use times no contract may. */
  plan?: PlanOverrides;
  hashKey?: Uint8Array;
  target?: Target;
}

const PRINCIPAL = { tenant: 'local', subject: 'ann', roles: ['buyer'] };
let keysDrawn = 0;

/** S2.3: whatever a test is about, no handler is called without its intent in the ledger. */
const intents: Promise<string | null>[] = [];
afterEach(async () => {
  const missing = (await Promise.all(intents.splice(0))).filter((intent) => intent !== null);
  expect(missing, 'handlers called without an intent').toEqual([]);
});

export class Operation {
  readonly ledger: Ledger;
  readonly action: Action;
  readonly target: Target;
  readonly plan: Plan;
  readonly input: AttemptRequest['input'];
  taskId = '';
  ordinal = 0;
  attempts = 0;
  deps: OperationDeps;

  private constructor(
    ledger: Ledger,
    action: Action,
    target: Target,
    planned: { plan: Plan; input: AttemptRequest['input'] },
  ) {
    this.ledger = ledger;
    this.action = action;
    this.target = target;
    this.plan = planned.plan;
    this.input = planned.input;
    this.deps = { ledger, handlers: action.handlers, contract: action.contract };
  }

  static async reserve(ledger: Ledger, spec: OperationSpec = {}): Promise<Operation> {
    const effect = spec.effect ?? 'conditional';
    const target = spec.target ?? new Target(effect !== 'unsafe');
    const action = actionOf(ledger, effect, target, spec);
    keysDrawn += 1;
    const key = spec.key === undefined ? `key-${process.pid}-${keysDrawn}` : (spec.key ?? undefined);
    const planned = planOperation(action, {
      args: spec.input ?? { amount: 5 },
      principal: PRINCIPAL,
      key,
      attach: false,
      hashKey: spec.hashKey,
    });
    const { deadlines, retry, handlers, ...rest } = spec.plan ?? {};
    const { plan } = planned;
    const changed: Plan = {
      ...plan,
      deadlines: { ...plan.deadlines, ...deadlines },
      retry: { ...plan.retry, ...retry },
      handlers: { ...plan.handlers, ...handlers },
      ...rest,
    };
    const operation = new Operation(ledger, action, target, { plan: changed, input: planned.input });
    const reserved = await ledger.reserve(planned.reservation);
    if (reserved.kind === 'fresh')
      [operation.taskId, operation.ordinal] = [reserved.taskId, reserved.ordinal];
    else [operation.taskId, operation.ordinal] = [reserved.row.taskId, reserved.row.ordinal];
    return operation;
  }

  get operationId(): string {
    return this.plan.operationId;
  }

  /** How often the effect took place, as the target counts. */
  get effects(): number {
    return this.target.effects.get(this.operationId) ?? 0;
  }

  request(overrides: Partial<AttemptRequest> = {}): AttemptRequest {
    const { plan, input, taskId, ordinal } = this;
    const attempt = overrides.attempt ?? (this.attempts += 1);
    return {
      plan,
      input,
      taskId,
      ordinal,
      attempt,
      purpose: 'execute',
      inline: false,
      verifyFinal: false,
      journal: [],
      ...overrides,
    };
  }

  attempt(
    overrides: Partial<AttemptRequest> = {},
    deps: Partial<OperationDeps> = {},
    signal = new AbortController().signal,
  ): Promise<OperationOutcome> {
    return performOperation({ ...this.deps, ...deps }, this.request(overrides), {
      signal,
      heartbeat: () => undefined,
    });
  }

  rollback(
    overrides: Partial<RollbackRequest> = {},
    deps: Partial<OperationDeps> = {},
    signal = new AbortController().signal,
  ): Promise<RollbackOutcome> {
    const { plan, input, taskId, ordinal } = this;
    const attempt = overrides.attempt ?? (this.attempts += 1);
    const request: RollbackRequest = {
      plan,
      input,
      taskId,
      ordinal,
      attempt,
      reason: 'verify_failed',
      final: false,
      journal: [],
      ...overrides,
    };
    return rollbackOperation({ ...this.deps, ...deps }, request, { signal, heartbeat: () => undefined });
  }

  /** The process dies right after `point`: nothing after it happens. */
  async crash(
    point: 'before_claim' | 'after_intent' | 'after_effect' | 'after_verify' | 'after_commit',
    overrides: Partial<AttemptRequest> = {},
  ): Promise<void> {
    const died = new Error(`died ${point}`);
    const faults: OperationDeps['faults'] = (place) =>
      place.point === point ? Promise.reject(died) : Promise.resolve();
    await this.attempt(overrides, { faults }).then(
      () => Promise.reject(new Error(`the attempt did not pass ${point}`)),
      (error: unknown) => (error === died ? undefined : Promise.reject(error as Error)),
    );
  }

  async row(): Promise<OperationRow> {
    const row = await this.ledger.find(this.operationId);
    if (row === null) throw new Error('no row');
    return row;
  }

  alerts() {
    return this.ledger.alerts({ tenant: PRINCIPAL.tenant, taskId: this.taskId });
  }
}

/**
 * Asked for as the handler begins, which does not wait for the answer: deadlines in tests are short. In a transaction of
 * the ledger's the intent is committed with the effect, and nobody else can see it; a `safe` action that runs while the
 * ledger is away has none, and generation 0.
 */
function lookForIntent(ledger: Ledger, { operationId, fence, tx }: ExecuteContext): void {
  if (tx !== undefined || fence.endsWith('.0')) return;
  const missing = async (): Promise<string | null> => {
    const attempts = await ledger.attempts(operationId);
    const isIntended = attempts.some(
      ({ ordinal, attempt, generation, executing }) =>
        executing && fence === `${ordinal}.${attempt}.${generation}`,
    );
    return isIntended ? null : `${operationId} under ${fence}`;
  };
  intents.push(missing());
}

function actionOf(
  ledger: Ledger,
  effect: 'safe' | 'conditional' | 'unsafe',
  target: Target,
  spec: OperationSpec,
): Action {
  const execute: ActionHandlers<Input, Output>['execute'] =
    spec.handlers?.execute ??
    (({ amount }, { operationId }) => Promise.resolve(target.apply(operationId, amount)));
  // Two named parameters: a contract refuses a conditional handler that can't pass the operation id on.
  const { rollback } = spec.handlers ?? {};
  const handlers: Handlers = {
    ...spec.handlers,
    execute: async (input, context) => {
      lookForIntent(ledger, context);
      return execute(input, context);
    },
    ...(rollback !== undefined && {
      rollback: async (input, result, context) => {
        lookForIntent(ledger, context);
        return rollback(input, result, context);
      },
    }),
  };
  const undoes = rollback !== undefined;
  const contract = defineAction({
    name: 'transfer',
    version: 1,
    description: 'Moves an amount.',
    input: z.object({ amount: z.number() }),
    output: z.object({ id: z.string(), amount: z.number() }),
    effect,
    ...(effect !== 'safe' && {
      rollback: undoes ? { kind: 'inBand' } : { kind: 'none', reason: 'the test reads what stands' },
    }),
    ...(handlers.verify === undefined && { verify: { none: 'the test looks itself' } }),
    ...(spec.lookup && { lookup: spec.lookup }),
    ...spec.definition,
  });
  return implementAction(contract, handlers as never);
}

/** A lookup that tells the truth about `target`. */
export const honestLookup = (target: Target) => async (context: { operationId: string }) => {
  const amount = target.valueOf(context.operationId);
  return Promise.resolve(amount === undefined ? notApplied() : applied({ id: context.operationId, amount }));
};

export interface TestStore {
  ledger: Ledger;
  close(): Promise<void>;
}

/** A fresh, migrated ledger of each kind. */
export const STORES: readonly { kind: Ledger['kind']; open: () => Promise<TestStore> }[] = [
  { kind: 'sqlite', open: openSqlite },
  { kind: 'postgres', open: openPostgres },
];

async function openSqlite(): Promise<TestStore> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-operation-'));
  const ledger = await openLedger({ url: `sqlite:${join(folder, 'ledger.db')}` });
  await ledger.migrate();
  const close = async (): Promise<void> => {
    await ledger.close();
    rmSync(folder, { recursive: true, force: true });
  };
  return { ledger, close };
}

async function openPostgres(): Promise<TestStore> {
  const database = await createTestDatabase();
  const ledger = await openLedger({ url: database.url });
  await ledger.migrate();
  const close = async (): Promise<void> => {
    await ledger.close();
    await database.drop();
  };
  return { ledger, close };
}
