/**
 * Cancel and resolve: intents that must reach the task, whoever is alive.
 *
 * Invariants:
 * 1. An answer `accepted` means durable: a worker took it, or the engine keeps it until one does.
 * 2. A message to a task that has ended changes nothing and says so (S7.4).
 * 3. A cancel that finds a task reserved and never started ends it in the ledger, so that nobody starts it later.
 */
import { randomUUID } from 'node:crypto';
import { keptText } from '../contract/text.ts';
import { endedWith } from '../task/ends.ts';
import type { OperationRow } from '../ledger/ledger.ts';
import type { JsonObject } from '../task/json.ts';
import type { Principal } from '../task/plan.ts';
import { taskNotFound } from './client-deps.ts';
import type { ClientDeps } from './client-deps.ts';
import type { DeliveryAnswer } from './engine.ts';
import type { Reader, Reading } from './reader.ts';
import { rowInDoubt } from './list.ts';
import { isReportedApplied } from '../task/outcome.ts';
import { checkedResolution, contradicted } from './resolution.ts';
import type { MessageAnswer, ResolutionInput } from './task-client.ts';
import { openStatusOf } from './task-facts.ts';

const REASON_LENGTH_MAX = 1_000;

type Send = (taskId: string) => Promise<DeliveryAnswer>;

export class Messenger {
  readonly #deps: ClientDeps;
  readonly #reader: Reader;

  constructor(deps: ClientDeps, reader: Reader) {
    this.#deps = deps;
    this.#reader = reader;
  }

  async cancel(taskId: string, principal: Principal, reason?: string): Promise<MessageAnswer> {
    const message = {
      by: principal.subject,
      ...(reason !== undefined && { reason: keptText(String(reason), REASON_LENGTH_MAX) }),
    };
    const send: Send = (id) => this.#deps.engine.cancel(id, message);
    return this.#send(taskId, principal.tenant, send, (row) => this.#cancelUnstarted(row, message));
  }

  async resolve(taskId: string, principal: Principal, input: ResolutionInput): Promise<MessageAnswer> {
    // Before the resolution is looked at: what is wrong with it must not tell a foreign task from an unknown one (M2.6).
    const reading = await this.#reader.read(taskId, principal.tenant, { fresh: true });
    const resolution = await checkedResolution(this.#deps, reading, principal, input);
    if (input.as === 'not_applied') await this.#refuseContradicted(reading, resolution.step);
    const message = { ...resolution, id: randomUUID() };
    const send: Send = (id) => this.#deps.engine.resolve(id, message);
    return this.#send(taskId, principal.tenant, send, (open) => notInAttention(openStatusOf(open)));
  }

  /** S2.7: the ledger would refuse it as well, but only once the task has asked it; here whoever says so is told why. */
  async #refuseContradicted({ state, row }: Reading, step: string | undefined): Promise<void> {
    const inDoubt = await rowInDoubt(this.#deps.ledger, state, row, step);
    if (inDoubt?.attentionAbout === 'effect' && isReportedApplied(inDoubt.lateOutcome)) throw contradicted();
  }

  async interrupt(taskId: string, principal: Principal, reason?: string): Promise<MessageAnswer> {
    const message = {
      by: principal.subject,
      ...(reason !== undefined && { reason: keptText(String(reason), REASON_LENGTH_MAX) }),
    };
    const send: Send = (id) => this.#deps.engine.interrupt(id, message);
    return this.#send(taskId, principal.tenant, send, (open) => ended(openStatusOf(open)));
  }

  async resume(taskId: string, principal: Principal): Promise<MessageAnswer> {
    const send: Send = (id) => this.#deps.engine.resume(id, { by: principal.subject });
    return this.#send(taskId, principal.tenant, send, (open) => ended(openStatusOf(open)));
  }

  async answer(taskId: string, principal: Principal, answers: JsonObject): Promise<MessageAnswer> {
    const send: Send = (id) => this.#deps.engine.answer(id, { by: principal.subject, answers });
    return this.#send(taskId, principal.tenant, send, (open) => ended(openStatusOf(open)));
  }

  async #send(
    taskId: string,
    tenant: string,
    send: Send,
    unstarted: (row: OperationRow) => MessageAnswer | Promise<MessageAnswer>,
  ): Promise<MessageAnswer> {
    const row = await this.#reader.ownRow(taskId, tenant);
    if (row?.end) return ended(row.end.status);
    if (row === null) await this.#reader.read(taskId, tenant); // authorises: throws `task_not_found`
    const delivery = await send(taskId);
    if (delivery.kind === 'answered') return delivery.reply;
    if (delivery.kind === 'stored')
      return { accepted: true, code: 'requested', status: row === null ? 'running' : openStatusOf(row) };
    if (delivery.kind === 'absent' && row?.state === 'reserved') return unstarted(row);
    return this.#sendToSuccessor(taskId, tenant, send);
  }

  /** The workflow is closed: it ended, or the engine closed it and the reading started its successor (S3.8). */
  async #sendToSuccessor(taskId: string, tenant: string, send: Send): Promise<MessageAnswer> {
    const { facts, row } = await this.#reader.read(taskId, tenant);
    if (row === null || row.end !== null || row.taskId === taskId) return ended(facts.status);
    const delivery = await send(row.taskId);
    if (delivery.kind === 'answered') return delivery.reply;
    return delivery.kind === 'stored'
      ? { accepted: true, code: 'requested', status: facts.status }
      : ended(facts.status);
  }

  async #cancelUnstarted(
    row: OperationRow,
    message: { by: string; reason?: string },
  ): Promise<MessageAnswer> {
    const end = endedWith(
      { plan: null, cancelRequested: true },
      'cancelled',
      'Cancelled before anything was sent.',
    );
    const { operationId, taskId, ordinal } = row;
    const notes = [{ type: 'cancel_requested', at: this.#deps.now(), data: message }];
    const closed = await this.#deps.ledger.closeTask({
      operationId,
      taskId,
      ordinal,
      attempt: 0,
      end,
      notes,
    });
    if (closed.kind === 'closed') return { accepted: true, code: 'requested', status: end.status };
    // Somebody started it meanwhile.
    const delivery = await this.#deps.engine.cancel(taskId, message);
    if (delivery.kind === 'absent') throw taskNotFound();
    return delivery.kind === 'answered'
      ? delivery.reply
      : { accepted: true, code: 'requested', status: openStatusOf(closed.row) };
  }
}

const ended = (status: string): MessageAnswer => ({ accepted: false, code: 'already_ended', status });
const notInAttention = (status: string): MessageAnswer => ({
  accepted: false,
  code: 'not_in_attention',
  status,
});
