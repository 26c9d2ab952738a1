/**
 * Starting or meeting a task: validate, plan, reserve, start (M1.2, S1.5).
 *
 * Invariants:
 * 1. Nothing is started before its row is reserved; nothing is answered before the start is durable.
 * 2. One operation, one task at a time: whoever calls with the same key meets it, whichever process reserved it.
 * 3. A client that died between reserving and starting leaves a row that the next call starts.
 * 4. A row that has ended answers for itself; the engine is not asked.
 */
import { randomBytes } from 'node:crypto';
import { actionNamed } from '../contract/action-named.ts';
import { HoldfastError } from '../contract/error.ts';
import { base32 } from '../contract/ids.ts';
import { LIMITS } from '../contract/limits.ts';
import { planOperation } from '../contract/plan-operation.ts';
import type { PlannedOperation } from '../contract/plan-operation.ts';
import { underStandingRules } from '../contract/standing-rule.ts';
import type { OperationRow, Reserved } from '../ledger/ledger.ts';
import { isCode } from './client-deps.ts';
import type { ClientDeps } from './client-deps.ts';
import type { PlannedStart, StartAnswer } from './engine.ts';
import { withLateCancel } from './late-cancel.ts';
import type { Reader, Reading } from './reader.ts';
import { settle } from './recovery.ts';
import type { StartRequest } from './task-client.ts';
import { factsOfOutcome, factsOfStart, replayOfRow } from './task-facts.ts';
import type { TaskFacts } from './task-facts.ts';
import { isSettled } from './waiter.ts';
import type { Waiter } from './waiter.ts';
import { isTerminal } from '../task/outcome.ts';

/** How often a call may find that the task it met has just ended with nothing sent, and go round again. */
const ROUNDS_MAX = 4;
/** M2.6: task ids carry at least 128 bits. */
const UNRECORDED_ID_BYTES = 32;
/** For the returned outcome of a workflow that has closed: one read. */
const RESULT_DEADLINE_MS = 1_500;
/** A cancel that meets no running effect is carried out within moments; one that does is not waited for longer. */
const CANCEL_WAIT_MS = 3_000;

export class Starter {
  readonly #deps: ClientDeps;
  readonly #reader: Reader;
  readonly #waiter: Waiter;

  constructor(deps: ClientDeps, reader: Reader, waiter: Waiter) {
    this.#deps = deps;
    this.#reader = reader;
    this.#waiter = waiter;
  }

  async start(request: StartRequest): Promise<TaskFacts> {
    const planned = await this.#plan(request);
    const superseded = await this.#superseded(planned);
    if (superseded !== null) return replayOfRow(superseded);
    for (let round = 1; round <= ROUNDS_MAX; round += 1) {
      const reserved = await this.#reserve(planned);
      const facts =
        reserved === null ? await this.#startUnrecorded(planned) : await this.#meet(planned, reserved);
      if (facts !== null) return facts;
    }
    throw new HoldfastError('operation_in_progress', 'The operation keeps changing hands just now.', {
      details: { operationId: planned.plan.operationId },
    });
  }

  async #plan({ action: name, args, key, principal, attach }: StartRequest): Promise<PlannedOperation> {
    const action = actionNamed(this.#deps.actions, name);
    const planned = planOperation(action, { args, principal, key, attach, hashKey: this.#deps.hashKey });
    return underStandingRules(planned, this.#deps.ledger).catch((error: unknown) => {
      // A rule that can not be read allows nothing: a person is asked.
      if (isCode(error, 'ledger_unavailable')) return planned;
      throw error;
    });
  }

  /** Field case 22: the call was made before, and what it was edited to was done; a caller that means another one names a key. */
  async #superseded({ plan, reservation }: PlannedOperation): Promise<OperationRow | null> {
    if (plan.approval == null || !reservation.attach) return null;
    const { principal, action, fingerprint } = plan;
    const { tenant, subject } = principal;
    return this.#deps.ledger.findEdited({
      ...{ tenant, subject, action, fingerprint: fingerprint.input },
      withinMs: LIMITS.supersededMs.value,
    });
  }

  /** Null: the ledger is away, and the contract lets this safe action run unrecorded (field case 16). */
  async #reserve({ plan, reservation }: PlannedOperation): Promise<Reserved | null> {
    try {
      return await this.#deps.ledger.reserve(reservation);
    } catch (error) {
      const isOptional = this.#deps.actions.get(plan.action)?.contract.ledger === 'optional';
      if (isCode(error, 'ledger_unavailable') && isOptional && plan.effect === 'safe') return null;
      throw error;
    }
  }

  async #startUnrecorded({ plan, input }: PlannedOperation): Promise<TaskFacts> {
    const taskId = `task_${base32(randomBytes(UNRECORDED_ID_BYTES))}`;
    const unrecorded = { ...plan, recorded: false };
    await this.#deps.engine.start(taskId, { v: 1, plan: unrecorded, input, ordinal: 1 });
    return factsOfStart(unrecorded, taskId, this.#deps.now());
  }

  /** Null: go round again. */
  async #meet(planned: PlannedOperation, reserved: Reserved): Promise<TaskFacts | null> {
    switch (reserved.kind) {
      case 'fresh':
        return this.#startFresh(planned, reserved);
      case 'open':
        return this.#meetOpen(planned, reserved.row, reserved.attached);
      case 'ended':
        return replayOfRow(await withLateCancel(this.#deps.ledger, reserved.row));
      case 'conflict':
        throw new HoldfastError(
          'idempotency_conflict',
          `The key was used before with other arguments; they differ at ${reserved.paths.join(', ') || 'the root'}.`,
          {
            details: {
              paths: reserved.paths,
              taskId: reserved.row.taskId,
              operationId: reserved.row.operationId,
            },
          },
        );
      default:
        return reserved satisfies never;
    }
  }

  async #startFresh(
    planned: PlannedOperation,
    { taskId, ordinal }: { taskId: string; ordinal: number },
  ): Promise<TaskFacts | null> {
    const { plan } = planned;
    const started = await this.#startIn(taskId, planned, ordinal);
    if (started.kind === 'running') return factsOfStart(plan, taskId, this.#deps.now());
    const row = await this.#deps.ledger.find(plan.operationId);
    if (row === null || row.end !== null || row.taskId !== taskId) return null; // others were faster than this call
    // The engine remembers a task that the ledger does not: a restored or replaced database. What it did stands.
    const result = await this.#deps.engine.result(taskId, this.#deps.now() + RESULT_DEADLINE_MS);
    if (result.kind === 'ended' && result.outcome.effect !== 'none') {
      const times = { createdAt: row.createdAt, updatedAt: row.updatedAt };
      return { ...factsOfOutcome(result.outcome, row.tenant, times), replayed: true };
    }
    return this.#settle(planned, row, false);
  }

  /** Without the engine's answer the task may or may not have begun; its id is known (M1.5). */
  async #startIn(taskId: string, planned: PlannedOperation, ordinal: number): Promise<StartAnswer> {
    try {
      return await this.#deps.engine.start(taskId, startOf(planned, ordinal));
    } catch (cause) {
      if (!isCode(cause, 'engine_unavailable')) throw cause;
      const { plan, reservation } = planned;
      const isSafeToRepeat = reservation.keyed || plan.effect === 'safe';
      const what = isSafeToRepeat
        ? 'The same call is safe to repeat.'
        : 'Ask for the task before you call again: without a key a repeat is another operation once this one has ended.';
      throw new HoldfastError(
        'engine_unavailable',
        `Temporal did not answer, so whether task ${taskId} was started is not known. ${what}`,
        {
          details: {
            ...{ taskId, operationId: plan.operationId, autoRetry: plan.autoRetry },
            ...(!isSafeToRepeat && { safeToRepeat: false }),
          },
          cause,
        },
      );
    }
  }

  async #meetOpen(
    planned: PlannedOperation,
    row: OperationRow,
    attached: boolean,
  ): Promise<TaskFacts | null> {
    const own = plannedFor(planned, row);
    if (row.state === 'reserved') {
      // S1.5: reserved, perhaps never started. USE_EXISTING meets it where it was.
      const started = await this.#startIn(row.taskId, own, row.ordinal);
      if (started.kind === 'closed') return this.#settle(own, row, attached);
    }
    const { facts, row: now, isStranded } = await this.#readPastCancel(row);
    if (isStranded && now !== null) return this.#settle(own, now, attached);
    if (now !== null && now.end !== null) {
      // It has ended while we looked: reserve again. A keyless call that met an effect takes that for its own (M1.4).
      return attached && now.end.effect !== 'none' ? { ...facts, attached } : null;
    }
    // The workflow has returned, only the row lacks the end (committed under onCancel rollback): recorded, it answers.
    if (isTerminal(facts.status) && now !== null) return this.#settle(own, now, attached);
    // Recovered under the next ordinal by that reading: a caller gets the id that goes on.
    return { ...facts, taskId: now?.taskId ?? facts.taskId, attached };
  }

  /** M1.4: a call that meets a cancel intent waits for what becomes of it, within bounds. */
  async #readPastCancel({ taskId, tenant }: OperationRow): Promise<Reading> {
    const reading = await this.#reader.read(taskId, tenant);
    const { cancelRequested, stale } = reading.facts;
    if (!cancelRequested || stale || isSettled(reading.facts)) return reading;
    await this.#waiter.wait(taskId, tenant, { timeoutMs: CANCEL_WAIT_MS });
    return this.#reader.read(taskId, tenant);
  }

  /** The row is open and its workflow is not running. Null: it has an end now, so reserve again. */
  async #settle(planned: PlannedOperation, row: OperationRow, attached: boolean): Promise<TaskFacts | null> {
    const record = await this.#deps.engine.record(row.taskId);
    const isRunning = record.kind === 'present' && record.state === 'running';
    const settled = isRunning
      ? { kind: 'running' as const, taskId: row.taskId }
      : await settle(this.#deps, row, record, { v: 1, plan: planned.plan, input: planned.input });
    if (settled.kind !== 'running') return null;
    const { facts } = await this.#reader.read(settled.taskId, row.tenant);
    return { ...facts, attached };
  }
}

function startOf({ plan, input }: PlannedOperation, ordinal: number): PlannedStart {
  return { v: 1, plan, input, ordinal };
}

/** M1.4: a call that met a row by equal arguments takes over that row's identity. */
function plannedFor(planned: PlannedOperation, row: OperationRow): PlannedOperation {
  const { operationId, key, keyed } = row;
  return { ...planned, plan: { ...planned.plan, operationId, key, keyed } };
}
