/** S2.1: what a row says before anything is done, and the outcome that a decided row stands for. Pure. */
import { differingPaths, redact } from '../contract/redact.ts';
import type { OperationRow, Written } from '../ledger/ledger.ts';
import type { AttemptRequest } from '../task/activity-api.ts';
import { endedWith } from '../task/ends.ts';
import type { Failure } from '../task/failure.ts';
import type { OperationOutcome, TaskEnd, TerminalCause } from '../task/outcome.ts';
import { NO_RESULT } from './result.ts';

type Asker = Pick<AttemptRequest, 'plan' | 'input' | 'taskId' | 'ordinal' | 'attempt'>;

/** The outcome the row already stands for; null when the attempt must go on. */
export function look(row: OperationRow, asker: Asker): OperationOutcome | null {
  if (!hasSameFingerprint(row, asker)) return { kind: 'conflict', paths: pathsThatDiffer(row, asker) };
  return decidedOutcome(row, asker);
}

/** S1.4: equality of either fingerprint is a match; what one sent another may have had filled in by defaults. */
function hasSameFingerprint(row: OperationRow, { plan }: Asker): boolean {
  const known = [row.fingerprint.sent, row.fingerprint.input];
  return known.includes(plan.fingerprint.sent) || known.includes(plan.fingerprint.input);
}

/** Paths only. Sensitive fields can't be compared here (the row holds keyed hashes): they are named when nothing else differs. */
function pathsThatDiffer(row: OperationRow, { plan, input }: Asker): string[] {
  const patterns = plan.sensitive.input;
  const paths = differingPaths(redact(row.arguments, patterns), redact(input, patterns));
  return paths.length > 0 ? paths : [...patterns];
}

export function decidedOutcome(row: OperationRow, asker: Asker): OperationOutcome | null {
  const isOurs = row.taskId === asker.taskId && row.ordinal === asker.ordinal;
  switch (row.state) {
    case 'committed':
      return { kind: 'committed', result: row.result ?? NO_RESULT, replayed: !isOurs };
    case 'failed':
      return { kind: 'failed', failure: row.failure ?? noReason('permanent', 'permanent_failure') };
    case 'rolled_back':
    case 'abandoned':
      return { kind: 'spent', end: row.end ?? endOf(row) };
    case 'reserved':
    case 'released':
    case 'in_flight':
    case 'applied':
      if (!isOurs) return tooLate(row, asker);
      // A terminal task stays terminal, also when the engine was made to run it again (S1.6, S2.12).
      return row.end === null ? null : { kind: 'spent', end: row.end };
    case 'refused':
      return isOurs
        ? refusedOutcome(row.failure?.message ?? 'The precondition did not hold.', row.end?.cause)
        : tooLate(row, asker);
    case 'rolling_back':
      return isOurs
        ? { kind: 'mismatch', reason: row.failure?.message ?? 'The effect is being undone.' }
        : tooLate(row, asker);
    case 'attention': {
      const failure = row.failure ?? noReason('unknown', 'outcome_unknown');
      return isOurs ? { kind: 'unknown', failure, attention: true } : tooLate(row, asker);
    }
    default:
      return row.state satisfies never;
  }
}

/** Why an operation was refused with nothing sent, or nothing of it applied. */
export type RefusalCause = 'precondition_failed' | 'decision_budget_spent';

export function refusedOutcome(reason: string, cause?: TerminalCause): OperationOutcome {
  return { kind: 'refused', reason, ...(cause === 'decision_budget_spent' && { cause }) };
}

/** The row belongs to another run of the operation, or this one's task was closed. */
export function tooLate(row: OperationRow, asker: Asker): OperationOutcome {
  const isSuperseded = row.ordinal > asker.ordinal || row.taskId !== asker.taskId;
  return { kind: 'fenceStale', rowAttempt: row.attempt, superseded: isSuperseded };
}

/** Of a write that came too late: under a claim that is not the row's any more, or under a lease that passed on. */
export function staleOutcome(
  { row, leaseFence }: Extract<Written, { kind: 'stale' }>,
  asker: Asker,
): OperationOutcome {
  if (leaseFence === undefined) return tooLate(row, asker);
  return { kind: 'fenceStale', rowAttempt: row.attempt, superseded: false, leaseFence };
}

function noReason(kind: Failure['kind'], code: string): Failure {
  return { kind, code, message: 'No reason was recorded.' };
}

/** For a row whose end was not recorded. */
function endOf(row: OperationRow): TaskEnd {
  const task = { plan: null, cancelRequested: false };
  if (row.state === 'abandoned') {
    const given = noReason('unknown', 'operation_abandoned');
    return { ...endedWith(task, 'abandoned', 'A person gave this operation up.', given), effect: 'unknown' };
  }
  return {
    ...endedWith(task, 'operation_rolled_back', 'This operation was carried out and undone.'),
    effect: 'rolled_back',
  };
}
