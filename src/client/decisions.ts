/**
 * A person's decision on its way to the task (S4).
 *
 * Invariants:
 * 1. Every decision has a decisionId, so that an update whose answer was lost and the signal sent instead are one.
 * 2. `accepted` means that the task took it, or `requested`: the engine keeps it until a worker does.
 * 3. A foreign task is not found (M2.6).
 */
import { randomUUID } from 'node:crypto';
import { openApproval } from '../task/approval.ts';
import type { DecisionMessage } from '../task/approval.ts';
import type { Principal } from '../task/plan.ts';
import { HoldfastError } from '../contract/error.ts';
import { taskNotFound } from './client-deps.ts';
import type { ClientDeps } from './client-deps.ts';
import type { Reader, Reading } from './reader.ts';
import type { DecisionAnswer, DecisionInput } from './task-client.ts';

const TERMINAL = ['completed', 'failed', 'cancelled'];

export class Decisions {
  readonly #deps: ClientDeps;
  readonly #reader: Reader;

  constructor(deps: ClientDeps, reader: Reader) {
    this.#deps = deps;
    this.#reader = reader;
  }

  async decide(taskId: string, principal: Principal, input: DecisionInput): Promise<DecisionAnswer> {
    const reading = await this.#reader.read(taskId, principal.tenant); // authorises: throws `task_not_found`
    const { facts } = reading;
    if (TERMINAL.includes(facts.status)) {
      return { accepted: false, code: 'already_ended', status: facts.status, message: 'The task has ended.' };
    }
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
        return {
          accepted: false,
          code: 'already_ended',
          status: facts.status,
          message: 'The task has ended.',
        };
      case 'absent':
        throw taskNotFound();
      default:
        return delivery satisfies never;
    }
  }
}

function openCallId({ state }: Reading): string {
  const callId = state === null ? undefined : openApproval(state)?.callId;
  if (callId !== undefined) return callId;
  throw new HoldfastError(
    'approval_not_open',
    'No approval of this task is open just now; name one with `callId`.',
  );
}
