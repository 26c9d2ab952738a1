/** Between a stored record and what readers get: parsed anew each time, so nobody shares an object (S2.9). */
import { canonicalText } from '../contract/canonical.ts';
import type { Json } from '../task/json.ts';
import type { OperationRow } from './ledger.ts';
import type { OperationTable } from './schema.ts';

/** Stored JSON; null stays null. */
export const stored = (value: object | Json): string | null =>
  value === null ? null : canonicalText(value as Json);

const parsed = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T));

export function rowOf(record: OperationTable): OperationRow {
  return {
    operationId: record.operation_id,
    tenant: record.tenant,
    subject: record.subject,
    action: record.action,
    key: record.key,
    keyed: record.keyed === 1,
    contractVersion: record.contract_version,
    effect: record.effect,
    state: record.state,
    ordinal: record.ordinal,
    taskId: record.task_id,
    attempt: record.attempt,
    generation: record.generation,
    claimedUntil: record.claimed_until,
    attemptDeadline: record.attempt_deadline,
    executions: record.executions,
    fingerprint: { sent: record.fingerprint_sent, input: record.fingerprint_input },
    arguments: JSON.parse(record.arguments) as OperationRow['arguments'],
    result: parsed(record.result),
    failure: parsed(record.failure),
    attentionAbout: record.attention_about,
    end: parsed(record.task_end),
    lateOutcome: parsed(record.late_outcome),
    parentOperationId: record.parent_operation_id,
    edited: parsed(record.edited),
    createdAt: record.created_at,
    updatedAt: record.updated_at,
  };
}
