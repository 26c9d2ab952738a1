/**
 * What the holder of a claim reports: S2.2 and S2.5 to S2.7. Each writes only while the claim is the row's, else
 * answers `stale` and changes nothing. The same report under the same claim again (its first answer was lost) answers
 * `written` and changes nothing either.
 */
import { createHash } from 'node:crypto';
import { cut } from '../contract/text.ts';
import type { Claim } from '../task/claim.ts';
import type { Failure } from '../task/failure.ts';
import type { JsonObject } from '../task/json.ts';
import type { StoredResult, TaskEnd } from '../task/outcome.ts';
import { endAttempt, loseAttempt, refusedAttempt } from './attempt.ts';
import { isCurrent, isHeld, isSuperseded } from './claim.ts';
import { overtakenBy } from './fence.ts';
import type { Place } from './claim.ts';
import type { Alert, RowState, Transitions, Written } from './ledger.ts';
import { stored } from './row.ts';
import type { OperationTable } from './schema.ts';
import type { Held, Unit } from './unit.ts';

const REASON_LENGTH_MAX = 2_000;

/** What one report does to the row. */
interface Report {
  by: string;
  to: RowState;
  from: readonly RowState[];
  /** Must the claim still run or be renewable, rather than only be the newest. */
  held: boolean;
  columns: Partial<OperationTable>;
  data: JsonObject;
  /** As the attempt table calls it. */
  outcome: string;
  alert?: Alert;
}

/** Columns that a claim given back leaves behind. */
const GIVEN_BACK = { claimed_until: null, attempt_deadline: null } as const;

export const ended = (end: TaskEnd | null): Partial<OperationTable> =>
  end === null ? {} : { task_end: stored(end), attachable: 0 };

export async function release(unit: Unit, claim: Claim, failure: Failure): Promise<Written> {
  return report(unit, claim, {
    by: 'release',
    from: ['reserved', 'released', 'in_flight'],
    to: 'released',
    held: true,
    columns: { ...GIVEN_BACK, failure: stored(failure) },
    data: { failure: failureData(failure) },
    outcome: 'released',
  });
}

export async function fail(
  unit: Unit,
  claim: Claim,
  failure: Failure,
  end: TaskEnd,
  alert?: Alert,
): Promise<Written> {
  return report(unit, claim, {
    by: 'fail',
    from: ['in_flight', 'applied'],
    to: 'failed',
    held: false,
    columns: { ...GIVEN_BACK, failure: stored(failure), ...ended(end) },
    data: { failure: failureData(failure), end: { ...end } as unknown as JsonObject },
    outcome: 'failed',
    ...(alert && { alert }),
  });
}

/** The claim is kept: what follows is verification, by this attempt or by a later one. */
export async function storeApplied(
  unit: Unit,
  claim: Claim,
  result: StoredResult,
  how: 'executed' | 'looked_up',
): Promise<Written> {
  return report(unit, claim, {
    by: 'storeApplied',
    from: ['in_flight', 'applied'],
    to: 'applied',
    held: false,
    columns: { result: stored(result), failure: null },
    data: { how, result: digestOf(result) },
    outcome: 'applied',
  });
}

export async function commit(
  unit: Unit,
  claim: Claim,
  result: StoredResult,
  { verified, how, end }: { verified: boolean; how: 'executed' | 'looked_up'; end: TaskEnd | null },
): Promise<Written> {
  return report(unit, claim, {
    by: 'commit',
    from: ['in_flight', 'applied'],
    to: 'committed',
    held: false,
    columns: { ...GIVEN_BACK, result: stored(result), failure: null, ...ended(end) },
    data: {
      verified,
      how,
      result: digestOf(result),
      ...(end && { end: { ...end } as unknown as JsonObject }),
    },
    outcome: 'committed',
  });
}

export async function mismatched(
  unit: Unit,
  claim: Claim,
  result: StoredResult,
  reason: string,
  alert: Alert,
): Promise<Written> {
  const message = cut(reason, REASON_LENGTH_MAX);
  return report(unit, claim, {
    by: 'mismatched',
    from: ['in_flight', 'applied'],
    to: 'rolling_back',
    held: false,
    columns: {
      ...GIVEN_BACK,
      result: stored(result),
      failure: stored({ kind: 'permanent', code: 'verify_failed', message }),
    },
    data: { reason: message, result: digestOf(result) },
    outcome: 'mismatch',
    alert,
  });
}

export async function raiseAttention(
  unit: Unit,
  claim: Claim,
  failure: Failure,
  alert: Alert,
  result?: StoredResult,
): Promise<Written> {
  const held = await unit.lock(claim.operationId);
  return reportOn(unit, held, claim, {
    by: 'raiseAttention',
    from: ['in_flight', 'applied', 'rolling_back'],
    to: 'attention',
    held: false,
    columns: {
      claimed_until: null,
      failure: stored(failure),
      attention_about: held.record.state === 'rolling_back' ? 'rollback' : 'effect',
      ...(result && { result: stored(result) }),
    },
    data: { failure: failureData(failure), ...(result && { result: digestOf(result) }) },
    outcome: 'attention',
    alert,
  });
}

/** S2.2: from no claim, or from a claim of our own. Nothing was sent, so the key may be used again. */
export async function refuse(
  unit: Unit,
  request: Parameters<Transitions['refuse']>[0],
  reason: string,
  end: TaskEnd,
): Promise<Written> {
  const message = cut(reason, REASON_LENGTH_MAX);
  const columns = {
    ...GIVEN_BACK,
    failure: stored({ kind: 'notApplied', code: end.cause, message }),
    ...ended(end),
  };
  const data: JsonObject = { reason: message, end: { ...end } as unknown as JsonObject };
  if ('claim' in request) {
    const from: RowState[] = ['reserved', 'released', 'in_flight'];
    return report(unit, request.claim, {
      by: 'refuse',
      from,
      to: 'refused',
      held: true,
      columns,
      data,
      outcome: 'refused',
    });
  }
  const held = await unit.lock(request.operationId);
  await unit.notes(held.record, request.taskId, request.notes);
  if (hasRefused(held.record, request)) return { kind: 'written', row: held.row };
  if (!mayRefuse(held, request)) return { kind: 'stale', row: held.row };
  const leaseFence = await overtakenBy(unit.tx, request.lease);
  if (leaseFence !== null) return { kind: 'stale', row: held.row, leaseFence };
  const { record } = held;
  loseAttempt(unit, record, held.now);
  unit.save(held, {
    by: 'refuse',
    to: 'refused',
    columns: { ...columns, attempt: request.attempt, generation: record.generation + 1 },
    event: 'operation.refused',
    data,
  });
  refusedAttempt(unit, held, request.taskId);
  return { kind: 'written', row: held.row };
}

function mayRefuse({ record, now }: Held, request: Place): boolean {
  if (isSuperseded(record, request) || request.attempt < record.attempt || record.task_end !== null)
    return false;
  if (record.state !== 'reserved' && record.state !== 'released') return false;
  const isRunning = record.claimed_until !== null && record.claimed_until > now;
  return request.attempt > record.attempt || !isRunning;
}

/** This very attempt refused before, and its answer was lost. */
const hasRefused = (record: OperationTable, request: Place): boolean =>
  record.state === 'refused' && record.attempt === request.attempt && !isSuperseded(record, request);

async function report(unit: Unit, claim: Claim, report: Report): Promise<Written> {
  return reportOn(unit, await unit.lock(claim.operationId), claim, report);
}

async function reportOn(unit: Unit, held: Held, claim: Claim, report: Report): Promise<Written> {
  const { record } = held;
  if (!isCurrent(record, claim)) return { kind: 'stale', row: held.row };
  if (isRepeat(record, report)) return { kind: 'written', row: held.row };
  const mayWrite = report.from.includes(record.state) && record.task_end === null;
  if (!mayWrite || (report.held && !isHeld(record, claim))) return { kind: 'stale', row: held.row };
  const leaseFence = await overtakenBy(unit.tx, claim.lease);
  if (leaseFence !== null) return { kind: 'stale', row: held.row, leaseFence };
  unit.save(held, {
    by: report.by,
    to: report.to,
    columns: report.columns,
    event: `operation.${report.outcome}`,
    data: report.data,
  });
  endAttempt(unit, claim, report.outcome, held.now);
  if (report.alert) unit.alert(report.alert);
  return { kind: 'written', row: held.row };
}

/** The row is where this report would take it, under this very claim. */
function isRepeat(record: OperationTable, { to, held, columns }: Report): boolean {
  if (record.state !== to) return false;
  if (to === 'applied') return record.result === columns.result;
  return !held || record.claimed_until === null;
}

/** What the audit keeps of a result: enough to recognise it, never the value. */
export function digestOf(result: StoredResult): JsonObject {
  if (result.kind !== 'inline') return { ...result };
  const text = stored(result.value) ?? 'null';
  return { kind: result.kind, sha256: createHash('sha256').update(text, 'utf8').digest('hex') };
}

export const failureData = (failure: Failure): JsonObject => ({ ...failure });
