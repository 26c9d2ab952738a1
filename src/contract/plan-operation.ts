/**
 * `planOperation`: one call becomes a plan, frozen, before anything is reserved or started (architecture.md, idea 1).
 * No I/O and no clock; the one thing not derived from its arguments is the key it draws for a keyless call.
 */
import { createHmac } from 'node:crypto';
import { z } from 'zod';
import type { Json, JsonObject } from '../task/json.ts';
import type { EffectClass, Plan, Principal } from '../task/plan.ts';
import { validateArguments } from './arguments.ts';
import { approvalFor } from './approval-policy.ts';
import type { ActionContract } from './define-action.ts';
import { HoldfastError } from './error.ts';
import { fingerprintOf } from './fingerprint.ts';
import { checkKey, generateKey, isIdentity, lengthPrefixed, operationIdOf } from './ids.ts';
import { handlersPresent } from './implement-action.ts';
import type { Action } from './implement-action.ts';
import { keyAmong } from './key-argument.ts';
import { leaseFor } from './lease-plan.ts';
import { LIMITS } from './limits.ts';
import { hashSensitive } from './redact.ts';

export interface PlanRequest {
  /** As sent: validated here. */
  args: unknown;
  principal: Principal;
  /** S1.2. Absent: the one in the contract's `keyArgument`; without, the call is keyless (S1.7). */
  key?: string | undefined;
  /** M1.4: false switches attaching to an open equal call off; it is never on for keyed calls. Default: the contract's. */
  attach?: boolean | undefined;
  /** The key of {@link hashSensitive} (see `deriveHashKey`). Needed where the contract has sensitive input fields. */
  hashKey?: Uint8Array | undefined;
}

/** What the ledger's `reserve` takes (`Reservation`; the ledger is not imported here). */
export interface PlannedReservation {
  operationId: string;
  principal: Principal;
  action: string;
  key: string;
  keyed: boolean;
  contractVersion: number;
  effect: EffectClass;
  fingerprint: { sent: string; input: string };
  arguments: Json;
  attach: boolean;
}

export interface PlannedOperation {
  plan: Plan;
  /** The validated input, whole: goes to the workflow, never into row, journal, log or audit. */
  input: JsonObject;
  reservation: PlannedReservation;
}

/**
 * Validates the call and freezes everything its run depends on.
 *
 * Throws `invalid_key`, `invalid_arguments` (`details.issues`: path, message, expected), `payload_too_large` (above
 * 1 MiB), `encryption_key_required` (sensitive fields and no `hashKey`), `invalid_contract` (the approval rule or the
 * resource throws or answers nonsense). Nothing was reserved or started then.
 */
export function planOperation(action: Action, request: PlanRequest): PlannedOperation {
  const { contract } = action;
  const principal = checkPrincipal(request.principal);
  const given = request.key ?? keyAmong(request.args, contract.keyArgument);
  const keyed = given !== undefined;
  const key = keyed ? checkKey(given) : generateKey();
  const { sent, input } = validateArguments(contract, request.args);
  const approval = approvalFor(contract, input);
  const hide = hiderOf(contract, principal.tenant, request.hashKey);
  const [hiddenSent, hiddenInput] = [hide(sent), hide(input)];
  const print = (value: Json) => fingerprintOf(principal.tenant, contract.name, value);
  const shared = {
    action: contract.name,
    principal,
    contractVersion: contract.version,
    operationId: operationIdOf(principal.tenant, contract.name, key),
    key,
    keyed,
    effect: contract.effect,
    fingerprint: { sent: print(hiddenSent), input: print(hiddenInput) },
  };
  const handlers = handlersPresent(action);
  const lease = leaseFor(contract, principal.tenant, hiddenInput);
  return {
    plan: {
      v: 1,
      ...shared,
      ...frozenTerms(contract),
      ...(contract.isProcedure === true && { procedure: {} }),
      handlers,
      autoRetry: keyed || contract.effect === 'safe',
      inline: approval === null && lease === null && isInline(contract, handlers),
      recorded: true,
      approval,
      ...(lease && { lease }),
    },
    input,
    reservation: {
      ...structuredClone(shared),
      arguments: hiddenInput,
      attach: !keyed && contract.attach && request.attach !== false,
    },
  };
}

/** The contract's terms as they will hold for this task, whatever is deployed later. */
function frozenTerms(contract: ActionContract) {
  const { sensitive } = contract;
  return {
    transactional: contract.transactional,
    rollback: { ...contract.rollback },
    sensitive: { input: [...sensitive.input], output: [...sensitive.output] },
    deadlines: { ...contract.deadlines },
    retry: { ...contract.retry },
    onCancel: contract.onCancel,
    cancelAttempt: contract.cancelAttempt,
  };
}

/** S2.13. Without a verify handler its deadline is never spent. */
function isInline(contract: ActionContract, handlers: Plan['handlers']): boolean {
  const { attemptMs, verifyMs } = contract.deadlines;
  const longestMs = attemptMs + (handlers.verify ? verifyMs : 0);
  return contract.inline !== false && contract.effect !== 'unsafe' && longestMs <= LIMITS.inlineMsMax.value;
}

/**
 * Replaces sensitive parts by hashes under a key bound to tenant and action, before fingerprints are taken: a plain
 * hash of a short secret could be guessed from the ledger (S2.10).
 */
function hiderOf(
  contract: ActionContract,
  tenant: string,
  hashKey: Uint8Array | undefined,
): (value: JsonObject) => Json {
  const patterns = contract.sensitive.input;
  if (patterns.length === 0) return (value) => value;
  if (hashKey === undefined) {
    throw new HoldfastError(
      'encryption_key_required',
      `${contract.name} has sensitive fields (${patterns.join(', ')}) and no key to hash them with.`,
    );
  }
  const bound = createHmac('sha256', hashKey).update(lengthPrefixed(tenant, contract.name)).digest();
  return (value) => hashSensitive(value, patterns, bound);
}

const identity = (what: string) =>
  z.string().refine(isIdentity, {
    error: `${what}: 1 to ${LIMITS.identityLengthMax.value} characters`,
  });

const principalSchema = z.object({
  tenant: identity('tenant'),
  subject: identity('subject'),
  roles: z.array(identity('role')).max(LIMITS.rolesMax.value),
});

function checkPrincipal(principal: unknown): Principal {
  const parsed = principalSchema.safeParse(principal);
  if (parsed.success) return parsed.data;
  const issues = parsed.error.issues.map(({ path, message }) => ({
    path: `principal.${path.join('.')}`,
    message,
    expected: 'text',
  }));
  throw new HoldfastError(
    'invalid_arguments',
    'The principal is not one: it needs tenant, subject and roles.',
    { details: { issues } },
  );
}
