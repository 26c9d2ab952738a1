/**
 * S8.4: tasks that other servers keep for operations of ours, and who may make a control call about one, until when.
 *
 * Never makes such a call: no transaction here holds one.
 * Invariants:
 * 1. One unexpired claim a task, by the database's clock. A lease that passed may be claimed by anybody.
 * 2. What came of a call is written under the newest token and the sequence it was claimed at; else nothing changes.
 * 3. Once a cancel is asked for, no poll is claimed or renewed until it was tried; a cancel under way stays undisturbed.
 * 4. Failures in a row are counted and never end a task; only the server's word does.
 * 5. Locks: the operation's row before the remote task's.
 */
import { randomUUID } from 'node:crypto';
import { LIMITS } from '../contract/limits.ts';
import type { RemoteTaskHandle } from '../contract/remote-server.ts';
import { keptText } from '../contract/text.ts';
import type { Claim } from '../task/claim.ts';
import type { StoredResult } from '../task/outcome.ts';
import { isRemoteEnd } from '../task/remote.ts';
import type { RemoteSeen } from '../task/remote.ts';
import { isHeld } from './claim.ts';
import type {
  RemoteCall,
  RemoteCallOutcome,
  RemoteClaim,
  RemoteClaimAnswer,
  RemotePhase,
  RemoteSettled,
  RemoteTaskRow,
  RemoteTasks,
} from './remote-tasks.ts';
import { stored } from './row.ts';
import type { RemoteTaskTable, Schema } from './schema.ts';
import type { Kysely } from 'kysely';
import type { Tx } from './store.ts';
import type { Held, Unit } from './unit.ts';

/** In which phases a call has a point. */
const POINT: Record<RemoteCall, readonly RemotePhase[]> = {
  poll: ['working', 'cancel_sent'],
  answer: ['working', 'cancel_sent'],
  cancel: ['cancelling'],
};

/** A server that takes no cancel is polled between two tries: its task may have ended. Asking for one began a new count. */
const hasPoint = ({ phase, failures }: RemoteTaskTable, call: RemoteCall): boolean =>
  POINT[call].includes(phase) || (call === 'poll' && phase === 'cancelling' && failures > 0);

export async function register(
  unit: Unit,
  claim: Claim,
  { handle, inDoubtBefore }: Parameters<RemoteTasks['registerRemoteTask']>[1],
): ReturnType<RemoteTasks['registerRemoteTask']> {
  const held = await unit.lock(claim.operationId);
  const known = await lockRow(unit.tx, claim.operationId);
  if (known !== null && isSame(known, handle)) return { kind: 'known', row: rowOf(known) };
  if (!isHeld(held.record, claim) || held.record.state !== 'in_flight')
    return { kind: 'stale', operation: held.row };
  if (known !== null && known.phase !== 'ended') return { kind: 'another', row: rowOf(known) };
  const record = recordOf(held, { handle, inDoubtBefore }, known?.seq ?? 0);
  const { operation_id: _key, ...columns } = record;
  await unit.tx.kysely
    .insertInto('remote_task')
    .values(record)
    .onConflict((conflict) => conflict.column('operation_id').doUpdateSet(columns))
    .execute();
  const { server, tool, taskId } = handle;
  unit.note(held.record, 'remote.started', { server, tool, remoteTaskId: taskId });
  return { kind: 'registered', row: rowOf(record) };
}

const isSame = (record: RemoteTaskTable, { server, taskId }: RemoteTaskHandle): boolean =>
  record.server === server && record.remote_id === taskId;

export async function find(db: Kysely<Schema>, operationId: string): Promise<RemoteTaskRow | null> {
  const record = await db
    .selectFrom('remote_task')
    .selectAll()
    .where('operation_id', '=', operationId)
    .executeTakeFirst();
  return record === undefined ? null : rowOf(record);
}

export async function askCancel(unit: Unit, operationId: string): Promise<RemoteTaskRow | null> {
  const held = await unit.tryLock(operationId);
  const record = await lockRow(unit.tx, operationId);
  if (held === null || record === null) return null;
  if (record.phase !== 'working') return rowOf(record);
  const asked = await save(unit.tx, record, {
    phase: 'cancelling',
    failures: 0,
    cancel_requested_at: held.now,
    updated_at: held.now,
  });
  unit.note(held.record, 'remote.cancel_requested', { remoteTaskId: record.remote_id });
  return rowOf(asked);
}

export async function claimCall(
  tx: Tx,
  { operationId, call, worker, leaseMs, keys = [] }: Parameters<RemoteTasks['claimRemoteCall']>[0],
): Promise<RemoteClaimAnswer> {
  const record = await lockRow(tx, operationId);
  if (record === null) return { kind: 'unknown' };
  const now = await tx.now();
  const refused = refusal(record, call, keys, now);
  if (refused !== null) return refused;
  const token = randomUUID();
  const claimed = { worker, token, claimed_for: call, lease_until: now + leaseMs };
  const row = rowOf(await save(tx, record, claimed));
  return { kind: 'granted', claim: { operationId, worker, call, token, seq: record.seq }, row };
}

function refusal(
  record: RemoteTaskTable,
  call: RemoteCall,
  keys: readonly string[],
  now: number,
): RemoteClaimAnswer | null {
  const row = rowOf(record);
  if (row.phase === 'ended') return { kind: 'ended', row };
  const isAnswered = call === 'answer' && keys.every((key) => row.answered.includes(key));
  const isSent = call === 'cancel' && row.phase === 'cancel_sent';
  if (isAnswered || isSent) return { kind: 'done', row };
  const leftMs = (record.lease_until ?? 0) - now;
  if (!hasPoint(record, call)) return call === 'cancel' ? { kind: 'unknown' } : { kind: 'superseded' };
  if (leftMs > 0) return { kind: 'busy', retryAfterMs: leftMs };
  const dueInMs = record.poll_due_at - now;
  return call === 'poll' && dueInMs > 0 ? { kind: 'not_due', retryAfterMs: dueInMs } : null;
}

export async function renewCall(tx: Tx, claim: RemoteClaim, leaseMs: number): Promise<boolean> {
  const record = await lockRow(tx, claim.operationId);
  const now = await tx.now();
  const isOurs =
    record !== null &&
    holds(record, claim) &&
    (record.lease_until ?? 0) > now &&
    hasPoint(record, claim.call);
  if (!isOurs) return false;
  await save(tx, record, { lease_until: Math.max(now + leaseMs, record.lease_until ?? 0) });
  return true;
}

export async function settleCall(
  unit: Unit,
  claim: RemoteClaim,
  outcome: RemoteCallOutcome,
): Promise<RemoteSettled> {
  const held = await unit.tryLock(claim.operationId);
  const record = await lockRow(unit.tx, claim.operationId);
  if (held === null || record === null) return { kind: 'fence_stale', row: null };
  if (isRepeat(record, claim)) return { kind: 'written', row: rowOf(record) };
  if (!holds(record, claim) || record.seq !== claim.seq || record.phase === 'ended')
    return { kind: 'fence_stale', row: rowOf(record) };
  const next = await save(unit.tx, record, {
    ...settled(record, outcome, held.now),
    seq: record.seq + 1,
    lease_until: null,
    updated_at: held.now,
  });
  tell(unit, held, record, next, outcome);
  return { kind: 'written', row: rowOf(next) };
}

/** The claim is over and its outcome was written: the same write, sent again. */
const isRepeat = (record: RemoteTaskTable, claim: RemoteClaim): boolean =>
  record.token === claim.token && record.lease_until === null && record.seq === claim.seq + 1;

const holds = (record: RemoteTaskTable, { worker, token, call }: RemoteClaim): boolean =>
  record.lease_until !== null &&
  record.worker === worker &&
  record.token === token &&
  record.claimed_for === call;

function settled(record: RemoteTaskTable, outcome: RemoteCallOutcome, now: number): Partial<RemoteTaskTable> {
  const poll_due_at = now + withinTtl(record, outcome.dueInMs, now);
  switch (outcome.kind) {
    case 'seen':
      return {
        ...{ failures: 0, last_error: null, last_polled_at: now, poll_due_at },
        seen: stored({ ...outcome.seen }),
        result: outcome.result === null ? record.result : stored(outcome.result),
        ...(isRemoteEnd(outcome.seen.kind) && { phase: 'ended' as const }),
      };
    case 'cancel_sent':
      return { failures: 0, last_error: null, poll_due_at, phase: 'cancel_sent', cancel_sent_at: now };
    case 'answered': {
      const answered = [...new Set([...rowOf(record).answered, ...outcome.keys])];
      return { failures: 0, last_error: null, poll_due_at, answered: stored(answered) ?? '[]' };
    }
    case 'failed': {
      const last_error = keptText(outcome.message, LIMITS.failureMessageLengthMax.value);
      // Of a call during which a cancel was asked for: it was no try of the cancel, which still comes first (invariant 3).
      if (record.phase === 'cancelling' && record.claimed_for !== 'cancel' && record.failures === 0)
        return { last_error, poll_due_at };
      return { failures: record.failures + 1, last_error, poll_due_at };
    }
    default:
      return outcome satisfies never;
  }
}

/** A result is fetched before the server may forget it: the nearer that is, the sooner the next poll. */
function withinTtl({ ttl_until: until }: RemoteTaskTable, dueInMs: number, now: number): number {
  if (until === null || until <= now) return dueInMs;
  const halfwayMs = Math.floor((until - now) / 2);
  return Math.min(dueInMs, Math.max(halfwayMs, LIMITS.remotePollMsMin.value));
}

/** The audit has what changed, not each look; a person hears of a server that stays away or takes no cancel, once. */
function tell(
  unit: Unit,
  held: Held,
  before: RemoteTaskTable,
  next: RemoteTaskTable,
  outcome: RemoteCallOutcome,
): void {
  const { remote_id: remoteTaskId } = next;
  if (outcome.kind === 'cancel_sent') unit.note(held.record, 'remote.cancel_sent', { remoteTaskId });
  if (outcome.kind === 'answered')
    unit.note(held.record, 'remote.answered', { remoteTaskId, keys: outcome.keys });
  if (outcome.kind === 'seen' && rowOf(before).seen?.kind !== outcome.seen.kind)
    unit.note(held.record, `remote.${outcome.seen.kind}`, { remoteTaskId });
  const { server } = next;
  const { task_id: taskId, operation_id: operationId, tenant, action } = held.record;
  const about = { taskId, operationId, tenant, action };
  if (isCancelLate(next) && !isCancelLate(before)) {
    unit.note(held.record, 'remote.cancel_late', { remoteTaskId });
    const why = next.last_error ?? before.last_error ?? 'it answers, and has not taken it';
    const message = `${server} has not taken the cancel of its task so far: ${why}. It is asked on.`;
    unit.alert({ ...about, type: 'remote_cancel_late', message, data: { server, remoteTaskId } });
  }
  if (outcome.kind !== 'failed' || next.failures !== outcome.alertAt) return;
  unit.note(held.record, 'remote.unreachable', { remoteTaskId, failures: next.failures });
  const message = `${server} has not answered about its task ${next.failures} times in a row; it is asked on.`;
  const data = { server, remoteTaskId, since: next.seq - next.failures + 1 };
  unit.alert({ ...about, type: 'remote_unreachable', message, data });
}

/** As of the newest outcome, so one outcome is the first. */
const isCancelLate = ({ phase, cancel_requested_at: askedAt, updated_at: at }: RemoteTaskTable): boolean =>
  phase === 'cancelling' && askedAt !== null && at - askedAt >= LIMITS.remoteCancelMs.value;

export async function releaseCall(tx: Tx, claim: RemoteClaim): Promise<boolean> {
  const record = await lockRow(tx, claim.operationId);
  if (record === null || !holds(record, claim)) return false;
  await save(tx, record, { lease_until: null, token: null, worker: null, claimed_for: null });
  return true;
}

/** The row under lock, on either store: a write that changes nothing. */
async function lockRow(tx: Tx, operationId: string): Promise<RemoteTaskTable | null> {
  const record = await tx.kysely
    .updateTable('remote_task')
    .set((eb) => ({ seq: eb.ref('seq') }))
    .where('operation_id', '=', operationId)
    .returningAll()
    .executeTakeFirst();
  return record ?? null;
}

async function save(
  tx: Tx,
  record: RemoteTaskTable,
  columns: Partial<RemoteTaskTable>,
): Promise<RemoteTaskTable> {
  await tx.kysely
    .updateTable('remote_task')
    .set(columns)
    .where('operation_id', '=', record.operation_id)
    .execute();
  return { ...record, ...columns };
}

function recordOf(
  { record, now }: Held,
  { handle, inDoubtBefore }: { handle: RemoteTaskHandle; inDoubtBefore: boolean },
  seq: number,
): RemoteTaskTable {
  return {
    operation_id: record.operation_id,
    task_id: record.task_id,
    tenant: record.tenant,
    action: record.action,
    server: handle.server,
    tool: handle.tool,
    remote_id: handle.taskId,
    poll_interval_ms: handle.pollIntervalMs,
    ttl_ms: handle.ttlMs,
    ttl_until: handle.ttlMs === null ? null : now + handle.ttlMs,
    in_doubt_before: inDoubtBefore ? 1 : 0,
    phase: 'working',
    seen: null,
    result: null,
    answered: '[]',
    failures: 0,
    last_error: null,
    seq,
    poll_due_at: now,
    last_polled_at: null,
    cancel_requested_at: null,
    cancel_sent_at: null,
    worker: null,
    token: null,
    claimed_for: null,
    lease_until: null,
    started_at: now,
    updated_at: now,
  };
}

function rowOf(record: RemoteTaskTable): RemoteTaskRow {
  const { worker, claimed_for: call, lease_until: leaseUntil } = record;
  return {
    operationId: record.operation_id,
    taskId: record.task_id,
    tenant: record.tenant,
    action: record.action,
    handle: {
      server: record.server,
      tool: record.tool,
      taskId: record.remote_id,
      pollIntervalMs: record.poll_interval_ms,
      ttlMs: record.ttl_ms,
    },
    phase: record.phase,
    seen: record.seen === null ? null : (JSON.parse(record.seen) as RemoteSeen),
    result: record.result === null ? null : (JSON.parse(record.result) as StoredResult),
    failures: record.failures,
    lastError: record.last_error,
    seq: record.seq,
    pollDueAt: record.poll_due_at,
    lastPolledAt: record.last_polled_at,
    cancelRequestedAt: record.cancel_requested_at,
    cancelSentAt: record.cancel_sent_at,
    ttlUntil: record.ttl_until,
    answered: JSON.parse(record.answered) as string[],
    inDoubtBefore: record.in_doubt_before === 1,
    claim: worker === null || call === null || leaseUntil === null ? null : { worker, call, leaseUntil },
    startedAt: record.started_at,
    updatedAt: record.updated_at,
  };
}
