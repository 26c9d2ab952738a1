/**
 * A person's decision on its way to the task (S4).
 *
 * Invariants:
 * 1. Every decision has a decisionId, so that an update whose answer was lost and the signal sent instead are one.
 * 2. `accepted` means that the task took it, or `requested`: the engine keeps it until a worker does.
 * 3. A foreign task is not found (M2.6).
 * 4. One that finds the task ended is refused here, and audited by who refused it (S10.3).
 */
import { randomUUID } from 'node:crypto';
import { openApproval } from '../task/approval.ts';
import type { DecisionCode, DecisionMessage } from '../task/approval.ts';
import { firstAnswer } from '../task/judge-decision.ts';
import type { JsonObject } from '../task/json.ts';
import type { Principal } from '../task/plan.ts';
import { HoldfastError } from '../contract/error.ts';
import { cut } from '../contract/text.ts';
import { isCode, taskNotFound } from './client-deps.ts';
import type { ClientDeps } from './client-deps.ts';
import type { Reader, Reading } from './reader.ts';
import type { DecisionAnswer, DecisionInput } from './task-client.ts';
import { isTerminal } from '../task/outcome.ts';

const TEXT_LENGTH_MAX = 1_000;
const NAME_LENGTH_MAX = 255;

export class Decisions {
  readonly #deps: ClientDeps;
  readonly #reader: Reader;

  constructor(deps: ClientDeps, reader: Reader) {
    this.#deps = deps;
    this.#reader = reader;
  }

  async decide(taskId: string, principal: Principal, input: DecisionInput): Promise<DecisionAnswer> {
    // Both authorise: throw `task_not_found`. Only the task knows which approval is open.
    const { tenant } = principal;
    const isNamed = input.callId !== undefined;
    const reading = await (isNamed
      ? this.#reader.read(taskId, tenant)
      : this.#reader.readAttended(taskId, tenant));
    const { facts } = reading;
    if (isTerminal(facts.status)) return this.#tooLate(reading, principal, input);
    if (input.kind !== 'edit' && input.arguments !== undefined) return saysMore(facts.status);
    const { callId = openCallId(reading), decisionId = randomUUID(), ...rest } = input;
    const decision: DecisionMessage & { decisionId: string } = { ...rest, callId, decisionId, by: principal };
    const delivery = await this.#deps.engine.decide(reading.row?.taskId ?? taskId, decision);
    switch (delivery.kind) {
      case 'answered':
        return delivery.reply;
      case 'stored':
        return {
          accepted: true,
          code: 'requested',
          status: facts.status,
          message: 'No worker answered just now; the decision is on record and is judged when one does.',
        };
      case 'closed':
        return this.#tooLate(await this.#reader.read(taskId, principal.tenant), principal, input);
      case 'absent':
        throw taskNotFound();
      default:
        return delivery satisfies never;
    }
  }

  /** The same decisionId still gets its first answer (S4.3); any other is refused, and that is audited. */
  async #tooLate({ facts }: Reading, principal: Principal, input: DecisionInput): Promise<DecisionAnswer> {
    const { status } = facts;
    const first = await this.#firstAnswer(facts.taskId, principal, input);
    if (first !== null) return { ...first, status };
    const code = (await this.#isDecided(facts.taskId, input)) ? 'already_decided' : lateCode(facts.cause);
    const note = { type: 'decision_ignored', at: this.#deps.now(), data: noted(principal, input, code) };
    const { operationId, taskId, tenant } = facts;
    await this.#deps.ledger
      .appendAudit({ taskId, operationId, tenant, notes: [note] })
      .catch((error: unknown) => {
        if (!isCode(error, 'ledger_unavailable')) throw error;
      });
    return { accepted: false, code, status, message: 'The task has ended; the decision changes nothing.' };
  }

  /** What the task would have said of this approval while it lived, from its audit. */
  async #isDecided(taskId: string, { callId }: DecisionInput): Promise<boolean> {
    const entries = await this.#deps.ledger.audit({ taskId }).catch((error: unknown) => {
      if (isCode(error, 'ledger_unavailable')) return [];
      throw error;
    });
    return entries.some(
      ({ type, data }) => type === 'approval_decided' && (callId === undefined || data['callId'] === callId),
    );
  }

  async #firstAnswer(taskId: string, { tenant }: Principal, { decisionId }: DecisionInput) {
    if (decisionId === undefined) return null;
    const { state } = await this.#reader.read(taskId, tenant, { fresh: true });
    return state === null ? null : firstAnswer(state, { decisionId });
  }
}

/** A worker of an earlier release would drop the arguments and do what was asked for at first. */
function saysMore(status: string): DecisionAnswer {
  const message = 'Only an edit has `arguments`: to change the call, decide with kind `edit`.';
  return { accepted: false, code: 'invalid_decision', status, message };
}

function lateCode(cause: string | null): DecisionCode {
  if (cause === 'approval_rejected') return 'already_decided';
  return cause === 'approval_expired' ? 'approval_expired' : 'already_ended';
}

function noted(
  { subject, roles }: Principal,
  { kind, callId, decisionId, reason, channel }: DecisionInput,
  code: DecisionCode,
): JsonObject {
  return {
    ...{ kind, code, by: subject, roles: [...roles] },
    ...(callId !== undefined && { callId: cut(callId, NAME_LENGTH_MAX) }),
    ...(decisionId !== undefined && { decisionId: cut(decisionId, NAME_LENGTH_MAX) }),
    ...(reason !== undefined && { reason: cut(reason, TEXT_LENGTH_MAX) }),
    ...(channel === 'mcp' && { channel }),
  };
}

function openCallId({ state }: Reading): string {
  const callId = state === null ? undefined : openApproval(state)?.callId;
  if (callId !== undefined) return callId;
  throw new HoldfastError(
    'approval_not_open',
    state === null
      ? 'No worker answers for this task just now, so which approval is open is not known; name it with `callId`, or decide again once a worker runs.'
      : 'No approval of this task is open just now; name one with `callId`.',
  );
}
