/**
 * From a contract's `resource` to the lease that one call runs under, frozen into its plan (S8). Pure.
 *
 * Fails closed: a function that throws or answers no name lets nothing run. It is given sensitive fields as their keyed
 * hashes, so that no secret becomes a name (S2.10).
 */
import { attemptMsInAll } from '../task/attempt-time.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { PlanDeadlines, PlanLease } from '../task/plan.ts';
import type { ActionContract } from './define-action.ts';
import { HoldfastError } from './error.ts';
import { leaseIdOf } from './ids.ts';
import { LIMITS } from './limits.ts';
import { hasLoneSurrogate, isLongerThan } from './text.ts';

/** For the way of a grant to the task and of the attempt to its worker. */
const ON_THE_WAY_MS = 10_000;

/** The shortest lease that a live worker can not outlive. */
export const leaseMsMin = (deadlines: PlanDeadlines): number => attemptMsInAll(deadlines, false);

/** `input`: validated, its sensitive parts replaced. Null: nothing is held. Throws `invalid_contract`. */
export function leaseFor(contract: ActionContract, tenant: string, input: Json): PlanLease | null {
  if (contract.resource === undefined) return null;
  const resource = ask(contract, input as JsonObject);
  if (resource === null) return null;
  const leaseMs = contract.leaseMs ?? leaseMsMin(contract.deadlines) + ON_THE_WAY_MS;
  return { id: leaseIdOf(tenant, resource), resource, leaseMs };
}

function ask(contract: ActionContract, input: JsonObject): string | null {
  let answer: unknown;
  try {
    answer = contract.resource?.(structuredClone(input));
  } catch (cause) {
    throw invalid(contract, 'threw', cause);
  }
  if (answer === null) return null;
  const lengthMax = LIMITS.resourceLengthMax.value;
  const isName = typeof answer === 'string' && answer !== '' && !isLongerThan(answer, lengthMax);
  if (isName && !hasLoneSurrogate(answer as string) && !(answer as string).includes('\0'))
    return answer as string;
  throw invalid(contract, `must answer null or a name of 1 to ${lengthMax} characters, at once`);
}

function invalid({ name }: ActionContract, problem: string, cause?: unknown): HoldfastError {
  const message = `resource of ${name} ${problem}; nothing was started.`;
  return new HoldfastError('invalid_contract', message, { cause });
}
