/** What workflows `action` and `procedure` are started with, and what of that is misuse (interfaces.md "Workflow action"). */
import { ApplicationFailure, workflowInfo } from '@temporalio/workflow';
import type { BareStart } from '../src/task/activity-api.ts';
import type { Json } from '../src/task/json.ts';
import type { Plan } from '../src/task/plan.ts';
import type { JournalSnapshot } from './journal.ts';

/** The workflow's one argument. `carried` is set by its own continue-as-new alone. */
export type ActionArgument = (PlannedArgument | BareStart) & { carried?: JournalSnapshot };

interface PlannedArgument {
  v: 1;
  plan: Plan;
  input: Json;
  ordinal: number;
}

/**
 * Throws `invalid_arguments`, which fails the workflow at once: anything thrown later would only fail its workflow task,
 * over and over.
 */
export function refuseMisuse(argument: unknown): asserts argument is ActionArgument {
  if (workflowInfo().retryPolicy !== undefined) {
    throw misuse(
      `workflow ${workflowInfo().workflowType} refuses a retry policy on the workflow: retries belong to the task (start it without \`retry\`)`,
    );
  }
  if (!isObject(argument) || argument['v'] !== 1 || !(isPlanned(argument) || isBare(argument))) {
    throw misuse(
      `workflow ${workflowInfo().workflowType} takes {v: 1, plan, input, ordinal} or {v: 1, action, input, key?, principal: {tenant, subject, roles}}`,
    );
  }
}

function misuse(message: string): ApplicationFailure {
  return ApplicationFailure.nonRetryable(message, 'invalid_arguments');
}

function isPlanned({ plan, input, ordinal }: Record<string, unknown>): boolean {
  return isPlan(plan) && input !== undefined && Number.isSafeInteger(ordinal);
}

/** Only what the task itself computes with; the rest goes to the activities as it is. */
function isPlan(plan: unknown): boolean {
  if (!isObject(plan) || plan['v'] !== 1 || !isObject(plan['deadlines']) || !isObject(plan['retry']))
    return false;
  const { attemptMs, verifyMs, runMs, heartbeatMs } = plan['deadlines'];
  const { maximumRetries, initialIntervalMs, maximumIntervalMs } = plan['retry'];
  return (
    typeof plan['operationId'] === 'string' &&
    typeof plan['action'] === 'string' &&
    [attemptMs, verifyMs, runMs, heartbeatMs, maximumRetries, initialIntervalMs, maximumIntervalMs].every(
      (value) => typeof value === 'number' && value >= 0,
    )
  );
}

function isBare({ action, input, key, principal }: Record<string, unknown>): boolean {
  return (
    typeof action === 'string' &&
    isObject(input) &&
    (key === undefined || typeof key === 'string') &&
    isPrincipal(principal)
  );
}

function isPrincipal(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { tenant, subject, roles } = value;
  return typeof tenant === 'string' && typeof subject === 'string' && Array.isArray(roles);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
