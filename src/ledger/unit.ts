/**
 * One method's changes inside one transaction: what it locked, what it wrote, what the audit says about it.
 *
 * 1. Locks are taken in the order of S10.2: operation row (a parent before its rollback), chain head, append, outbox.
 * 2. A row changes only by `save`, which holds the change against transitions.ts, guards it by the state that was
 *    locked, and writes the audit entry that describes it.
 * 3. Nothing is appended before `flush`, so that one method extends each chain once.
 */
import assert from 'node:assert/strict';
import { hostname } from 'node:os';
import { canonicalText } from '../contract/canonical.ts';
import type { AuditNote } from '../task/activity-api.ts';
import type { JsonObject } from '../task/json.ts';
import { extendChain } from './audit-chain.ts';
import type { Alert, OperationRow, RowState } from './ledger.ts';
import { rowOf } from './row.ts';
import type { OperationTable } from './schema.ts';
import type { ChainHead, LockedOperation, Tx } from './store.ts';
import { assertTransition } from './transitions.ts';
import type { From } from './transitions.ts';

/** Who writes, as the audit names it (S10.4). */
const PROCESS = `${hostname()}:${process.pid}`;

interface Event {
  taskId: string;
  operationId: string;
  tenant: string;
  type: string;
  data: JsonObject;
}

/** What a change does to a row, and what the audit says beyond from, to and fence. */
export interface Change {
  by: string;
  to: RowState;
  columns: Partial<OperationTable>;
  event: string;
  data?: JsonObject;
}

/** An operation under this unit's lock; `record` follows the changes made. */
export class Held {
  record: OperationTable;
  readonly now: number;
  constructor({ record, now }: Pick<LockedOperation, 'record' | 'now'>) {
    this.record = record;
    this.now = now;
  }
  get row(): OperationRow {
    return rowOf(this.record);
  }
}

export class Unit {
  readonly tx: Tx;
  readonly #onAlert: () => void;
  readonly #heads = new Map<string, ChainHead>();
  readonly #events: Event[] = [];
  readonly #alerts: Alert[] = [];
  #now = 0;

  constructor(tx: Tx, onAlert: () => void) {
    this.tx = tx;
    this.#onAlert = onAlert;
  }

  /** The row under lock, or null when there is none. */
  async tryLock(operationId: string): Promise<Held | null> {
    const locked = await this.tx.lockOperation(operationId);
    if (!locked) return null;
    this.#now = locked.now;
    if (!this.#heads.has(locked.record.task_id)) this.#heads.set(locked.record.task_id, locked.head);
    return new Held(locked);
  }

  /** The row under lock; that there is none is a defect of the caller, who must have reserved it. */
  async lock(operationId: string): Promise<Held> {
    const held = await this.tryLock(operationId);
    assert(held, `operation ${operationId} was never reserved`);
    return held;
  }

  save(held: Held, { by, to, columns, event, data }: Change): void {
    const { record } = held;
    assertTransition(by, record.state, to);
    const next: OperationTable = {
      ...record,
      ...columns,
      state: to,
      updated_at: Math.max(held.now, record.updated_at),
    };
    this.#update(record, next);
    held.record = next;
    this.note(next, event, { ...data, ...describe(by, record.state, next) });
  }

  /** For a row that was inserted in this transaction, or a change that is none of a state. */
  note(
    record: Pick<OperationTable, 'task_id' | 'operation_id' | 'tenant'>,
    type: string,
    data: JsonObject,
  ): void {
    this.#events.push({
      taskId: record.task_id,
      operationId: record.operation_id,
      tenant: record.tenant,
      type,
      data,
    });
  }

  inserted(held: Held, by: string, event: string, data: JsonObject): void {
    assertTransition(by, 'none', held.record.state);
    this.#now = held.now;
    this.note(held.record, event, { ...data, ...describe(by, 'none', held.record) });
  }

  /** S10.3. A note that the chain holds already (sent again after an attempt was lost) is not written twice. */
  async notes(
    record: Pick<OperationTable, 'operation_id' | 'tenant'>,
    taskId: string,
    notes: readonly AuditNote[],
  ): Promise<void> {
    if (notes.length === 0) return;
    const { operation_id: operationId, tenant } = record;
    await this.#headOf(taskId, tenant);
    const journaled = notes.map(({ type, at, data }) => {
      const told: JsonObject = { ...data, journaledAt: new Date(at).toISOString() };
      return { type, data: told, text: canonicalText(told) };
    });
    const known = await this.#recorded(taskId, journaled);
    for (const { type, data, text } of journaled) {
      if (known.has(`${type} ${text}`)) continue;
      known.add(`${type} ${text}`);
      this.#events.push({ taskId, operationId, tenant, type, data });
    }
  }

  alert(alert: Alert): void {
    this.#alerts.push(alert);
  }

  /** For one that no change of a row keeps from being written again: the same about the same task is there or not. */
  async alertOnce(alert: Alert): Promise<void> {
    if (this.#now === 0) this.#now = await this.tx.now();
    const found = await this.tx.kysely
      .selectFrom('outbox')
      .select('id')
      .where('task_id', '=', alert.taskId)
      .where('type', '=', alert.type)
      .where('data', '=', canonicalText(alert.data))
      .executeTakeFirst();
    if (found === undefined) this.alert(alert);
  }

  /** Appends what was noted, then the alerts. Called once, at the end. */
  async flush(): Promise<void> {
    for (const taskId of new Set(this.#events.map((event) => event.taskId))) await this.#append(taskId);
    for (const alert of this.#alerts) this.#insertAlert(alert);
    if (this.#alerts.length > 0) this.#onAlert();
  }

  async #append(taskId: string): Promise<void> {
    const events = this.#events.filter((event) => event.taskId === taskId);
    let head = await this.#headOf(taskId, events[0]?.tenant ?? '');
    const first = head.seq;
    const at = new Date(this.#now).toISOString();
    const entries = events.flatMap(({ operationId, tenant, type, data }) => {
      const extended = extendChain(head, { taskId, operationId, tenant, at }, [{ type, data }]);
      head = extended.head;
      return extended.entries;
    });
    this.#heads.set(taskId, head);
    this.tx.send(
      this.tx.statements.get('advance head', { taskId, first, ...head }, (db, slots) =>
        db
          .updateTable('audit_head')
          .set({ seq: slots.seq, hash: slots.hash })
          .where('task_id', '=', slots.taskId)
          .where('seq', '=', slots.first),
      ),
      1,
    );
    for (const { data, ...entry } of entries) {
      this.tx.send(
        this.tx.statements.get('append audit', { ...entry, data: canonicalText(data) }, (db, slots) =>
          db.insertInto('audit').values({
            task_id: slots.taskId,
            seq: slots.seq,
            operation_id: slots.operationId,
            tenant: slots.tenant,
            type: slots.type,
            at: slots.at,
            data: slots.data,
            hash: slots.hash,
          }),
        ),
      );
    }
  }

  /** The head of a task's chain under lock; begins the chain where there is none. */
  async #headOf(taskId: string, tenant: string): Promise<ChainHead> {
    const known = this.#heads.get(taskId);
    if (known) return known;
    if (this.#now === 0) this.#now = await this.tx.now();
    const [head] = await this.tx.query<ChainHead>(
      this.tx.statements.get(
        'open chain',
        { taskId, tenant, hash: '0'.repeat(64), now: this.#now },
        (db, slots) =>
          db
            .insertInto('audit_head')
            .values({
              task_id: slots.taskId,
              tenant: slots.tenant,
              seq: 0,
              hash: slots.hash,
              created_at: slots.now,
            })
            .onConflict((conflict) =>
              conflict.column('task_id').doUpdateSet((eb) => ({ tenant: eb.ref('audit_head.tenant') })),
            )
            .returning(['seq', 'hash']),
      ),
    );
    assert(head, 'an upsert answers the row');
    this.#heads.set(taskId, head);
    return head;
  }

  async #recorded(taskId: string, notes: readonly { type: string; text: string }[]): Promise<Set<string>> {
    const rows = await this.tx.kysely
      .selectFrom('audit')
      .select(['type', 'data'])
      .where('task_id', '=', taskId)
      .where('type', 'in', [...new Set(notes.map(({ type }) => type))])
      .where('data', 'in', [...new Set(notes.map(({ text }) => text))])
      .execute();
    return new Set(rows.map(({ type, data }) => `${type} ${data}`));
  }

  /** Sets the columns that differ, guarded by what the row was when it was locked. */
  #update(before: OperationTable, next: OperationTable): void {
    const names = (Object.keys(next) as (keyof OperationTable)[]).filter(
      (name) => next[name] !== before[name],
    );
    if (names.length === 0) return;
    const values = {
      ...Object.fromEntries(names.map((name) => [name, next[name]])),
      wasId: before.operation_id,
      wasState: before.state,
      wasOrdinal: before.ordinal,
      wasAttempt: before.attempt,
      wasGeneration: before.generation,
    };
    const statement = this.tx.statements.get(`update operation ${names.join(' ')}`, values, (db, slots) =>
      db
        .updateTable('operation')
        .set(Object.fromEntries(names.map((name) => [name, (slots as Record<string, unknown>)[name]])))
        .where('operation_id', '=', slots.wasId)
        .where('state', '=', slots.wasState)
        .where('ordinal', '=', slots.wasOrdinal)
        .where('attempt', '=', slots.wasAttempt)
        .where('generation', '=', slots.wasGeneration),
    );
    this.tx.send(statement, 1);
  }

  #insertAlert(alert: Alert): void {
    const { data, ...rest } = alert;
    const values = { ...rest, data: canonicalText(data), now: this.#now };
    this.tx.send(
      this.tx.statements.get('insert alert', values, (db, slots) =>
        db.insertInto('outbox').values({
          type: slots.type,
          task_id: slots.taskId,
          operation_id: slots.operationId,
          tenant: slots.tenant,
          action: slots.action,
          message: slots.message,
          data: slots.data,
          created_at: slots.now,
        }),
      ),
    );
  }
}

function describe(by: string, from: From, record: OperationTable): JsonObject {
  return {
    by,
    from,
    to: record.state,
    ordinal: record.ordinal,
    attempt: record.attempt,
    generation: record.generation,
    contractVersion: record.contract_version,
    process: PROCESS,
  };
}
