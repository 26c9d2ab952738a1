/** One Holdfast in the test's process, with an example's actions and tables, and calls as a person would make them. */
import { randomUUID } from 'node:crypto';
import { createTestHoldfast } from '../../src/testing/index.ts';
import type { TestHoldfastOptions, TestServer } from '../../src/testing/index.ts';
import type { Action, ActionContract, ActionHandlers } from '../../src/index.ts';
import type {
  DecisionAnswer,
  DecisionInput,
  ResolutionInput,
  TaskAnswer,
} from '../../src/client/task-client.ts';
import type { JsonObject } from '../../src/task/json.ts';
import type { z } from 'zod';
import type { Kysely, Transaction } from 'kysely';

const PATIENCE_MS = 30_000;

export interface OpenExample<Tables> {
  /** Starts and waits until the task ended or needs a person; `replayed` is as the start said. */
  call(action: string, args: JsonObject, key?: string): Promise<TaskAnswer>;
  start(action: string, args: JsonObject, key?: string): Promise<TaskAnswer>;
  wait(taskId: string): Promise<TaskAnswer>;
  /** How it stands now, and the attempts begun so far. */
  peek(taskId: string): Promise<{ status: string; attempts: number }>;
  cancel(taskId: string): Promise<void>;
  resolve(taskId: string, resolution: ResolutionInput): Promise<void>;
  /** As somebody else of the tenant. */
  decide(taskId: string, subject: string, roles: string[], decision: DecisionInput): Promise<DecisionAnswer>;
  /** The example's own tables, in a transaction of the ledger. */
  tables<T>(work: (tx: Transaction<Tables>) => Promise<T>): Promise<T>;
  /** Types of the alerts of a task. */
  alerts(taskId: string): Promise<string[]>;
  close(): Promise<void>;
}

/** Keys mean something within a tenant alone, so that tests on one server never meet: each gets its own. */
export async function openExample<Tables = unknown>(
  server: TestServer,
  actions: Action[],
  setup: (ledger: Kysely<unknown>) => Promise<void> = () => Promise.resolve(),
  {
    tenant = `tenant-${randomUUID()}`,
    ...more
  }: Pick<TestHoldfastOptions, 'store' | 'procedures' | 'faults'> & { tenant?: string } = {},
): Promise<OpenExample<Tables>> {
  const holdfast = await createTestHoldfast({ actions, server, worker: false, ...more });
  const { client, ledger, startWorker, close } = holdfast;
  await ledger.transaction((_transitions, tx) => setup(tx as Kysely<unknown>));
  await startWorker();
  const principal = { tenant, subject: 'ann', roles: [] };
  const start = (action: string, args: JsonObject, key?: string) =>
    client.start({ action, args, principal, ...(key !== undefined && { key }) });
  const wait = (taskId: string) => client.wait(taskId, principal, { timeoutMs: PATIENCE_MS });
  return {
    start,
    wait,
    call: async (action, args, key) => {
      const started = await start(action, args, key);
      return { ...(await wait(started.taskId)), replayed: started.replayed };
    },
    decide: (taskId, subject, roles, decision) =>
      client.decide(taskId, { ...principal, subject, roles }, decision),
    peek: async (taskId) => {
      const { status, attempts } = await client.detail(taskId, principal);
      return { status, attempts: attempts.length };
    },
    resolve: async (taskId, resolution) => void (await client.resolve(taskId, principal, resolution)),
    cancel: async (taskId) => void (await client.cancel(taskId, principal)),
    tables: (work) => ledger.transaction((_transitions, tx) => work(tx as Transaction<Tables>)),
    alerts: async (taskId) =>
      (await ledger.alerts({ tenant: principal.tenant, taskId })).map(({ type }) => type),
    close,
  };
}

/** An action's handlers with their types back, for a test that replaces one of them. */
export function handlersOf<Input extends z.ZodObject, Output extends z.ZodType>(
  action: Action,
  _contract: ActionContract<Input, Output>,
): ActionHandlers<z.output<Input>, z.output<Output>> {
  return action.handlers as unknown as ActionHandlers<z.output<Input>, z.output<Output>>;
}
