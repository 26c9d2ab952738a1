/**
 * Reads one task from whoever knows it best: the ended row, the workflow, the workflow's returned outcome, the open row.
 *
 * Invariants:
 * 1. A foreign task reads like an unknown one, whatever the source (M2.6).
 * 2. A read never hangs: without a worker it answers the last known state, marked stale (M2.2).
 * 3. Once a row has an end, every read says that end.
 * 4. A task the engine closed from outside is settled by whoever notices first (S3.8).
 */
import { setTimeout as delay } from 'node:timers/promises';
import { operationIdOf, taskIdOf } from '../contract/ids.ts';
import type { AuditEntry, OperationRow } from '../ledger/ledger.ts';
import { endedWith } from '../task/ends.ts';
import { isTerminal } from '../task/outcome.ts';
import type { TaskEnd } from '../task/outcome.ts';
import type { TaskState } from '../task/state.ts';
import { isCode, nothingUnderKey, taskNotFound } from './client-deps.ts';
import type { ClientDeps } from './client-deps.ts';
import type { EngineRecord, EngineSight } from './engine.ts';
import { withLateCancel } from './late-cancel.ts';
import { isDecided, settle } from './recovery.ts';
import { factsOfOutcome, factsOfRow, factsOfState, openFacts, withEnd } from './task-facts.ts';
import type { TaskFacts } from './task-facts.ts';

type NotRunning = Exclude<EngineRecord, { state: 'running' }>;
type PresentRecord = Extract<EngineRecord, { kind: 'present' }>;

export interface Reading {
  facts: TaskFacts;
  /** The workflow's state where a worker gave it. */
  state: TaskState | null;
  row: OperationRow | null;
  /** In doubt, without a workflow, and nobody here knows the arguments to go on with. */
  isStranded: boolean;
}

/** For the returned outcome of a workflow that has closed or is about to. */
const RESULT_MS = 1_500;
/** How long, and after what pause, a worker is waited for. */
const ATTENDED_MS = 12_000;
const ATTENDED_PAUSE_MS = 250;
/** A successor is followed this often; more is a defect or a fight over the task. */
const FOLLOW_MAX = 3;

/** Longer, the engine takes none; half a character or U+0000 no store could look for. */
const ID_LENGTH_MAX = 1_000;
const isPossibleId = (id: unknown): id is string =>
  typeof id === 'string' && id !== '' && id.length <= ID_LENGTH_MAX && !/[\0\p{Surrogate}]/u.test(id);

export class Reader {
  readonly #deps: ClientDeps;

  constructor(deps: ClientDeps) {
    this.#deps = deps;
  }

  /** `fresh`: ask the engine even where the row already has the answer. Throws `task_not_found`. */
  async read(taskId: string, tenant: string, options: { fresh?: boolean } = {}): Promise<Reading> {
    return this.#read(taskId, tenant, options.fresh ?? false, FOLLOW_MAX);
  }

  /**
   * As `read`, from the task itself: where no worker answers for it, asked again for a while. A server keeps what is meant
   * for a worker that died for up to ten seconds before another gets it.
   */
  async readAttended(taskId: string, tenant: string): Promise<Reading> {
    const giveUpAt = performance.now() + ATTENDED_MS;
    for (;;) {
      const reading = await this.read(taskId, tenant, { fresh: true });
      const isKnown = reading.state !== null || isTerminal(reading.facts.status);
      if (isKnown || performance.now() > giveUpAt) return reading;
      await delay(ATTENDED_PAUSE_MS);
    }
  }

  /**
   * The task that a call under this key has begun; the operation's id holds the tenant, so another's is not there. Throws
   * `task_not_found`, and `ledger_unavailable` since only the row says which run of the key is the latest.
   */
  async find(action: string, key: string, tenant: string): Promise<Reading> {
    const operationId = operationIdOf(tenant, action, key);
    const row = await this.#deps.ledger.find(operationId);
    if (row !== null) return this.read(row.taskId, tenant);
    // The engine may remember a task that a restored ledger does not.
    return this.read(taskIdOf(operationId, 1), tenant).catch((error: unknown) => {
      throw isCode(error, 'task_not_found') ? nothingUnderKey() : error;
    });
  }

  /** The row, if this tenant may see it: null when there is none or the ledger can't be read. */
  async ownRow(taskId: string, tenant: string): Promise<OperationRow | null> {
    if (!isPossibleId(taskId)) throw taskNotFound();
    const row = await this.#deps.ledger.findByTask(taskId).catch((error: unknown) => {
      if (isCode(error, 'ledger_unavailable')) return null;
      throw error;
    });
    if (row !== null && row.tenant !== tenant) throw taskNotFound();
    return row;
  }

  async #read(taskId: string, tenant: string, fresh: boolean, hops: number): Promise<Reading> {
    const row = await this.ownRow(taskId, tenant);
    if (row?.end && !fresh && !this.#isWholeResultElsewhere(row)) return this.#fromEnded(row);
    if (row === null) return this.#readWithoutRow(taskId, tenant, hops);
    const sight = await this.#sight(taskId);
    if (sight === null) return fromRow(row, true);
    if (row.end !== null) return this.#readEnded(row, sight);
    const { record, state } = sight;
    if (record.kind === 'present' && record.state === 'running') {
      return state === null ? fromRow(row, true) : fromState(state, tenant, row);
    }
    // Returned, and the row is not where an end could be written: what it says of itself is the best there is.
    const isSaid = record.kind === 'present' && record.state === 'completed' && !isDecided(row);
    if (isSaid && state?.end) return fromState(state, tenant, row);
    return this.#readSettled(taskId, tenant, row, record, hops);
  }

  /** Null: the engine can't be reached. */
  async #sight(taskId: string): Promise<EngineSight | null> {
    try {
      return await this.#deps.engine.sight(taskId);
    } catch (error) {
      if (isCode(error, 'engine_unavailable')) return null;
      throw error;
    }
  }

  /** S2.10: the row's copy of a sensitive result is redacted; the workflow still has the whole one. */
  #isWholeResultElsewhere(row: OperationRow): boolean {
    const contract = this.#deps.actions.get(row.action)?.contract;
    return row.end?.status === 'completed' && (contract?.sensitive.output.length ?? 0) > 0;
  }

  async #fromEnded(row: OperationRow): Promise<Reading> {
    return fromRow(await withLateCancel(this.#deps.ledger, row), false);
  }

  async #readEnded(row: OperationRow, { record, state }: EngineSight): Promise<Reading> {
    const reading = await this.#fromEnded(row);
    const mayTell =
      record.kind === 'present' && record.state !== 'killed' && this.#isWholeResultElsewhere(row);
    // The row has its end a moment before the workflow returns.
    const result = mayTell ? await this.#deps.engine.result(row.taskId, this.#deps.now() + RESULT_MS) : null;
    const whole = result?.kind === 'ended' ? result.outcome.result : null;
    return { ...reading, facts: { ...reading.facts, result: whole ?? reading.facts.result }, state };
  }

  async #readSettled(
    taskId: string,
    tenant: string,
    row: OperationRow,
    record: NotRunning,
    hops: number,
  ): Promise<Reading> {
    const settled = await settle(this.#deps, row, record, null);
    if (settled.kind === 'ended') return this.#fromEnded(settled.row);
    if (settled.kind === 'stranded' || hops === 0)
      return { ...fromRow(row, true), isStranded: settled.kind === 'stranded' };
    const successor = await this.#read(settled.taskId, tenant, false, hops - 1);
    return asked(taskId, successor);
  }

  /** Superseded by a later ordinal (S1.6), started bare and not reserved yet, unrecorded, or not ours at all. */
  async #readWithoutRow(taskId: string, tenant: string, hops: number): Promise<Reading> {
    const { record, state } = await this.#deps.engine.sight(taskId);
    const audit = await this.#ownAudit(taskId, tenant);
    if (audit[0]?.type === 'standing_rule_made') throw taskNotFound();
    const isOurs = audit.length > 0 || (record.kind === 'present' && record.tenant === tenant);
    if (!isOurs) throw taskNotFound();
    if (record.kind === 'present' && record.state !== 'killed')
      return this.#readEngineOnly(taskId, tenant, record, state);
    const end = endInAudit(audit);
    const successor = await this.#successor(audit);
    if (end === null && successor !== null && successor.taskId !== taskId && hops > 0) {
      return asked(taskId, await this.#read(successor.taskId, tenant, false, hops - 1));
    }
    return engineOnly(factsOfLost(taskId, tenant, record, audit, end), null);
  }

  async #readEngineOnly(
    taskId: string,
    tenant: string,
    record: PresentRecord,
    state: TaskState | null,
  ): Promise<Reading> {
    if (record.state === 'running') {
      return engineOnly(
        state === null ? factsOfUnknownOpen(taskId, tenant, record) : factsOfState(state, tenant, null),
        state,
      );
    }
    const result = await this.#deps.engine.result(taskId, this.#deps.now() + RESULT_MS);
    if (result.kind !== 'ended') throw taskNotFound();
    const times = { createdAt: record.startedAt, updatedAt: record.closedAt ?? record.startedAt };
    return engineOnly(factsOfOutcome(result.outcome, tenant, times), state);
  }

  async #ownAudit(taskId: string, tenant: string): Promise<AuditEntry[]> {
    const entries = await this.#deps.ledger.audit({ taskId }).catch((error: unknown) => {
      if (isCode(error, 'ledger_unavailable')) return [];
      throw error;
    });
    return entries.filter((entry) => entry.tenant === tenant);
  }

  async #successor(audit: AuditEntry[]): Promise<OperationRow | null> {
    const operationId = audit.at(-1)?.operationId;
    return operationId === undefined ? null : this.#deps.ledger.find(operationId);
  }
}

function fromRow(row: OperationRow, stale: boolean): Reading {
  return { facts: factsOfRow(row, { stale }), state: null, row, isStranded: false };
}

function fromState(state: TaskState, tenant: string, row: OperationRow): Reading {
  return { facts: factsOfState(state, tenant, row), state, row, isStranded: false };
}

function engineOnly(facts: TaskFacts, state: TaskState | null): Reading {
  return { facts, state, row: null, isStranded: false };
}

/** A task that goes on under another id still answers to the id it was asked by. */
function asked(taskId: string, reading: Reading): Reading {
  return { ...reading, facts: { ...reading.facts, taskId } };
}

/** The end of a task whose row has moved on, as its audit has it. */
function endInAudit(entries: readonly AuditEntry[]): TaskEnd | null {
  const ends = entries.flatMap(({ data }) => {
    const end: unknown = data['end'];
    return typeof end === 'object' && end !== null && 'status' in end && 'effect' in end
      ? [end as unknown as TaskEnd]
      : [];
  });
  return ends.at(-1) ?? null;
}

/** Closed by the engine before anything was reserved or sent, or known from its audit alone. */
function factsOfLost(
  taskId: string,
  tenant: string,
  record: EngineRecord,
  audit: readonly AuditEntry[],
  recordedEnd: TaskEnd | null,
): TaskFacts {
  const message = 'The engine closed the task from outside before anything was sent.';
  const end = recordedEnd ?? endedWith({ plan: null, cancelRequested: false }, 'engine_closed', message);
  const isPresent = record.kind === 'present';
  const action = (isPresent ? record.action : null) ?? actionInAudit(audit);
  const createdAt = isPresent ? record.startedAt : Date.parse(audit[0]?.at ?? '') || 0;
  return {
    ...withEnd(openFacts({ taskId, tenant, action, createdAt }), end),
    operationId: audit.at(-1)?.operationId ?? '',
    updatedAt: Date.parse(audit.at(-1)?.at ?? '') || createdAt,
  };
}

function actionInAudit(audit: readonly AuditEntry[]): string {
  const found = audit.map(({ data }) => data['action']).find((action) => typeof action === 'string');
  return typeof found === 'string' ? found : '';
}

/** Running, with neither a row nor a worker to ask. */
function factsOfUnknownOpen(taskId: string, tenant: string, record: PresentRecord): TaskFacts {
  const known = { taskId, tenant, action: record.action ?? '', createdAt: record.startedAt };
  return { ...openFacts(known), stale: true };
}
