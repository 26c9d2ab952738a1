/**
 * The ledger: the durable table of operations (S2) with its audit (S10), outbox (S9), fences (S8) and payloads.
 *
 * Owns: identity beyond the engine's retention, the fence, the state of the effect. Knows no Temporal and calls no
 * handler. One contract suite (test/contract) runs on every store.
 *
 * Invariants:
 * 1. Every method that changes a row is one transaction, in which its audit entries and alerts are written too.
 * 2. A row moves only along the table in transitions.ts, under the guard named there.
 * 3. A write under a claim takes place only while `(ordinal, attempt, generation)` are still the row's, and under a lease
 *    only while no newer fence of its resource was seen; else it answers `stale` and changes nothing.
 * 4. All times that decide anything are the database's.
 * 5. Values given in are stored as canonical JSON and parsed anew for every reader (S2.9).
 */
import type { StandingRule } from '../contract/standing-rule.ts';
import type { AuditNote } from '../task/activity-api.ts';
import type { Resolution, RollbackReason } from '../task/event.ts';
import type { Claim, HeldLease } from '../task/claim.ts';
import type { Failure } from '../task/failure.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { StoredResult, TaskEnd } from '../task/outcome.ts';
import type { EffectClass, PlanEdit } from '../task/plan.ts';
import type { Reservation } from '../task/reservation.ts';
import type { Alert, Outbox } from './alert.ts';
import type { RemoteTasks } from './remote-tasks.ts';
import type { UpstreamMemory } from './upstream-memory.ts';

export type { Alert, AlertState, OutboxMessage, StoredAlert } from './alert.ts';

export type RowState =
  | 'reserved'
  | 'in_flight'
  | 'applied'
  | 'committed'
  | 'refused'
  | 'released'
  | 'failed'
  | 'rolling_back'
  | 'rolled_back'
  | 'attention'
  | 'abandoned';

/** One operation as stored. Sensitive leaves of `arguments` are keyed hashes; those of `result` are redacted (S2.10). */
export interface OperationRow {
  operationId: string;
  tenant: string;
  subject: string;
  action: string;
  key: string;
  keyed: boolean;
  contractVersion: number;
  effect: EffectClass;
  state: RowState;
  ordinal: number;
  taskId: string;
  /** Highest attempt that claimed, refused or closed in this ordinal; 0 before any. */
  attempt: number;
  generation: number;
  /** Database clock, ms since the epoch; null without a claim. */
  claimedUntil: number | null;
  /** When the newest execution's own deadline passes, database clock; null when nothing was ever sent in doubt. */
  attemptDeadline: number | null;
  /** How many executions were ever begun (intents committed). */
  executions: number;
  fingerprint: { sent: string; input: string };
  arguments: Json;
  result: StoredResult | null;
  failure: Failure | null;
  /** Set while the state is `attention`. */
  attentionAbout: 'effect' | 'rollback' | null;
  /** How the task of this ordinal ended; null while it is open (kept apart from `state`, interfaces.md "Closing"). */
  end: TaskEnd | null;
  /** What a stale attempt reported after its claim was taken over (S2.7). */
  lateOutcome: Json | null;
  parentOperationId: string | null;
  /** S4.2: what was executed, or claimed to be, instead of `fingerprint`: an approver's edit; null when nobody edited. */
  edited: PlanEdit | null;
  createdAt: number;
  updatedAt: number;
}

export type { Reservation };

export type Reserved =
  /** A new row, or the next ordinal of one whose task ended with nothing sent (S1.6): start this task. */
  | { kind: 'fresh'; taskId: string; ordinal: number }
  /** Met an open task; `attached` when met by equal arguments rather than by key (M1.4). */
  | { kind: 'open'; row: OperationRow; attached: boolean }
  /** The key is spent and its task has ended: answer from the row. */
  | { kind: 'ended'; row: OperationRow }
  /** Same key, other arguments. Paths only (JSON pointers), never values. */
  | { kind: 'conflict'; paths: string[]; row: OperationRow };

export interface ClaimRequest {
  operationId: string;
  taskId: string;
  ordinal: number;
  attempt: number;
  /** How long the claim lasts before an equal attempt may take it over. Renewed by heartbeat. */
  claimMs: number;
  /** The execution's own deadline from now; recorded with the intent. */
  attemptMs: number;
  /** False: take over in order to reconcile; `intend` must precede an execution. */
  executing: boolean;
  /** S4.2: kept beside the request's fingerprint. Default null. */
  edited?: PlanEdit | null;
  /** S8.3: refused as stale once a newer fence of it was seen. */
  lease?: HeldLease | undefined;
  notes: AuditNote[];
}

export type ClaimAnswer =
  /** `before` is the row as it was: state `in_flight` or `applied` there means an earlier attempt may have reached the world. */
  | { kind: 'granted'; claim: Claim; before: OperationRow }
  | { kind: 'busy'; retryAfterMs: number }
  /** `leaseFence`: it is the lease that is stale, and this the newest fence seen. */
  | { kind: 'stale'; rowAttempt: number; superseded: boolean; leaseFence?: number }
  /** The row is in a state that no attempt may claim (committed, failed, refused and ended, attention, …). */
  | { kind: 'closed'; row: OperationRow };

/** `leaseFence`: the claim is the row's, its lease is stale; the newest fence seen. */
export type Written =
  { kind: 'written'; row: OperationRow } | { kind: 'stale'; row: OperationRow; leaseFence?: number };

export interface RollbackClaimRequest {
  parentOperationId: string;
  /** S6.2: the rollback's own operation. */
  operationId: string;
  taskId: string;
  ordinal: number;
  attempt: number;
  claimMs: number;
  attemptMs: number;
  reason: RollbackReason;
  /** S8.3: refused as stale once a newer fence of it was seen. */
  lease?: HeldLease | undefined;
  notes: AuditNote[];
}

export type RollbackClaimAnswer =
  | { kind: 'granted'; claim: Claim; parent: OperationRow }
  /** The rollback was carried out by an earlier attempt. */
  | { kind: 'done'; row: OperationRow }
  | { kind: 'busy'; retryAfterMs: number }
  | { kind: 'stale'; rowAttempt: number; leaseFence?: number }
  /** The parent is in a state from which no rollback starts: `attention` (a person is asked), or nothing was applied. */
  | { kind: 'closed'; row: OperationRow };

/** The transitions, bound either to the ledger (one transaction each) or to one open transaction (S2.8). */
export interface Transitions {
  reserve(request: Reservation): Promise<Reserved>;
  find(operationId: string): Promise<OperationRow | null>;
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  /** Records the intent to execute under a claim that was taken to reconcile (S2.3, S2.4). */
  intend(claim: Claim, options: { claimMs: number; attemptMs: number }): Promise<Written>;
  renew(claim: Claim, claimMs: number): Promise<boolean>;
  owns(claim: Claim): Promise<boolean>;
  /** `reserved|released → refused`, without a claim, or `in_flight → refused` under a claim just reconciled (S2.2). Records the end. */
  refuse(
    request: { claim: Claim } | Omit<ClaimRequest, 'claimMs' | 'attemptMs' | 'executing' | 'edited'>,
    reason: string,
    end: TaskEnd,
  ): Promise<Written>;
  /** `in_flight → released`: provably nothing applied. */
  release(claim: Claim, failure: Failure): Promise<Written>;
  /** `in_flight|applied → failed`: provably nothing applied, for good. Records the end; `alert` where a person must hear of it (S6.5). */
  fail(claim: Claim, failure: Failure, end: TaskEnd, alert?: Alert): Promise<Written>;
  /** `in_flight → applied` (S2.6). */
  storeApplied(claim: Claim, result: StoredResult, how: 'executed' | 'looked_up'): Promise<Written>;
  /** `in_flight|applied → committed` (S2.7). `end` null where the task may still roll back (onCancel rollback). */
  commit(
    claim: Claim,
    result: StoredResult,
    options: { verified: boolean; how: 'executed' | 'looked_up'; end: TaskEnd | null },
  ): Promise<Written>;
  /** `in_flight|applied → rolling_back` with an alert. */
  mismatched(claim: Claim, result: StoredResult, reason: string, alert: Alert): Promise<Written>;
  /** `in_flight|applied|rolling_back → attention` with an alert. `result` when something is known to be applied. */
  raiseAttention(claim: Claim, failure: Failure, alert: Alert, result?: StoredResult): Promise<Written>;
  /** Parent `in_flight|applied|committed|rolling_back → rolling_back`; the rollback's own row is reserved and claimed, with intent. */
  claimRollback(request: RollbackClaimRequest): Promise<RollbackClaimAnswer>;
  /** The rollback's row `→ committed`, the parent `rolling_back → rolled_back`, the parent's end recorded. */
  finishRollback(
    claim: Claim,
    parentOperationId: string,
    remains: string | null,
    end: TaskEnd,
  ): Promise<Written>;
  /** The rollback's row `→ released`, so that the next attempt may claim it. */
  releaseRollback(claim: Claim, failure: Failure): Promise<Written>;
  /** The rollback's row and the parent `→ attention`, with an alert. */
  rollbackAttention(
    claim: Claim,
    parentOperationId: string,
    failure: Failure,
    alert: Alert,
  ): Promise<Written>;
  /** interfaces.md "Closing": raises the fence beyond `attempt` and records the end, unless something is in doubt. */
  closeTask(request: {
    operationId: string;
    taskId: string;
    ordinal: number;
    attempt: number;
    end: TaskEnd;
    notes: AuditNote[];
    /** Committed to the outbox with the end, where this call is the one that records it. */
    alert?: Alert;
  }): Promise<
    | { kind: 'closed'; row: OperationRow }
    | { kind: 'inFlight'; row: OperationRow }
    | { kind: 'committed'; row: OperationRow }
    | { kind: 'superseded'; row: OperationRow }
  >;
  /**
   * A person's answer (S3.5). `contradicted`: `not_applied` of an effect whose own attempt has reported it as applied (S2.7);
   * nothing changed. `applied` → state applied; `not_applied` → released with the fence raised, or `rolled_back` when about a rollback; `abandoned`. */
  resolve(request: {
    operationId: string;
    taskId: string;
    ordinal: number;
    attempt: number;
    resolution: Resolution;
    end: TaskEnd | null;
    notes: AuditNote[];
  }): Promise<
    | { kind: 'written'; row: OperationRow }
    | { kind: 'notInAttention'; row: OperationRow }
    | { kind: 'contradicted'; row: OperationRow }
  >;
  /** S2.7: a stale attempt's outcome is kept, changes no result, and alerts when another execution took place or a person was asked. */
  recordLate(claim: Claim, outcome: Json, alert: Alert): Promise<void>;
  /** S1.5 for a step of a procedure. `superseded`: the procedure's row belongs to another run, or has ended. */
  reserveStep(request: {
    parent: { operationId: string; taskId: string; ordinal: number };
    reservation: Reservation;
    notes: AuditNote[];
  }): Promise<
    | { kind: 'reserved'; row: OperationRow }
    | { kind: 'conflict'; paths: string[]; row: OperationRow }
    | { kind: 'superseded'; row: OperationRow }
  >;
  /** The end of a procedure and of its committed steps (S6.3). Idempotent: answers the end on record. */
  endProcedure(request: {
    operationId: string;
    taskId: string;
    ordinal: number;
    end: TaskEnd;
    result: StoredResult | null;
    notes: AuditNote[];
  }): Promise<{ kind: 'ended'; row: OperationRow } | { kind: 'superseded'; row: OperationRow }>;
  /** S3.8: the engine closed the task from outside. Nothing sent: ended `failed`, effect none; else the next ordinal, to be reconciled. */
  recover(
    operationId: string,
    taskId: string,
  ): Promise<{ kind: 'ended'; row: OperationRow } | { kind: 'recovery'; row: OperationRow }>;
  /** Records the end of a task whose last transition did not (committed under onCancel rollback). Idempotent. */
  recordEnd(taskId: string, end: TaskEnd): Promise<void>;
  /** Audit entries without a ledger change; used before a task starts to wait for a person (S10.3). */
  appendAudit(request: {
    taskId: string;
    operationId: string;
    tenant: string;
    notes: AuditNote[];
    /** Committed to the outbox with them. */
    alert?: Alert;
  }): Promise<void>;
}

export interface AuditEntry {
  taskId: string;
  seq: number;
  operationId: string;
  tenant: string;
  type: string;
  /** ISO 8601 with milliseconds, UTC, database clock. */
  at: string;
  data: JsonObject;
  /** Hex SHA-256 over the previous hash and this entry's canonical JSON (docs/ledger.md gives the exact bytes). */
  hash: string;
}

/** A standing rule as it is made (S4.5); its id is drawn by whoever makes it, so that making it twice makes one. */
export type NewStandingRule = Omit<StandingRule, 'madeAt' | 'expiresAt' | 'revoked'> & { termMs: number };

export interface ListFilter {
  tenant: string;
  open?: boolean;
  state?: RowState;
  action?: string;
  /** 1 to 1000, default 100; newest first. */
  limit?: number;
  before?: number;
}

export interface Ledger extends Transitions, Outbox, RemoteTasks, UpstreamMemory {
  readonly kind: 'sqlite' | 'postgres';
  /** S2.8: all of `work` in one transaction; `tx` is the open Kysely transaction for the user's own statements. */
  transaction<T>(work: (transitions: Transitions, tx: unknown) => Promise<T>): Promise<T>;
  findByTask(taskId: string): Promise<OperationRow | null>;
  /** The newest call of the same principal and arguments that an approver edited, committed within the last `withinMs`. */
  findEdited(call: {
    tenant: string;
    subject: string;
    action: string;
    fingerprint: string;
    withinMs: number;
  }): Promise<OperationRow | null>;
  list(filter: ListFilter): Promise<OperationRow[]>;
  attempts(operationId: string): Promise<
    {
      ordinal: number;
      attempt: number;
      generation: number;
      claimedAt: number;
      executing: boolean;
      outcome: string | null;
      finishedAt: number | null;
    }[]
  >;
  /** Entries of one task in order, or of a tenant for an export: newest tasks first, whole chains until `limit` (default 10,000) is reached. */
  audit(filter: { taskId: string } | { tenant: string; limit?: number }): Promise<AuditEntry[]>;
  /** All of a tenant, one whole chain at a time, newest task first: an export of any size. */
  auditChains(tenant: string): AsyncIterable<AuditEntry[]>;
  /** Checks every chain (or one) against its head; the first break names task and seq. */
  verifyAudit(filter?: {
    taskId: string;
  }): Promise<
    { ok: true; tasks: number; entries: number } | { ok: false; taskId: string; seq: number; reason: string }
  >;
  /** S4.5: with its audit entry, in the chain named by its id. Throws `invalid_standing_rule` when too many stand. */
  makeStandingRule(rule: NewStandingRule): Promise<StandingRule>;
  /** Null when the tenant has none of that id. One that is revoked already stays as it was. */
  revokeStandingRule(request: {
    id: string;
    tenant: string;
    by: string;
    reason: string | null;
  }): Promise<StandingRule | null>;
  /** Oldest first. `standing`: neither revoked nor expired, by the database's clock. */
  standingRules(filter: {
    tenant: string;
    action?: string;
    standing?: boolean;
    limit?: number;
  }): Promise<StandingRule[]>;
  putPayload(tenant: string, value: string): Promise<{ sha256: string; bytes: number }>;
  getPayload(tenant: string, sha256: string): Promise<string | null>;
  /** S8.3: true and remembered when `fence` is the newest seen for `resource`; false when a newer one was. */
  advanceFence(resource: string, fence: number): Promise<boolean>;
  /** 0 where none was seen. */
  newestFence(resource: string): Promise<number>;
  now(): Promise<number>;
  /** Throws `ledger_unavailable` or `ledger_unsuitable`; answers the schema version. */
  check(): Promise<{ version: number }>;
  /** Brings the schema to this version; safe under concurrency. */
  migrate(): Promise<{ from: number; to: number }>;
  close(): Promise<void>;
}

export interface LedgerOptions {
  /** `sqlite:FILE` | `postgres://…`. `sqlite::memory:` is refused outside tests (S10.1). */
  url: string;
  /** For tests on a skipped clock (SQLite only): replaces the database's clock. */
  nowMs?: () => number;
  /** Told of each transaction: how long it took, its wait included, and whether it was committed. */
  onTransaction?: (ms: number, isCommitted: boolean) => void;
  /** Tests only: allow a store that dies with the process. */
  allowEphemeral?: boolean;
  /** For those who only look: a SQLite file that is not there is `ledger_unsuitable` instead of made. */
  mustExist?: boolean;
}
