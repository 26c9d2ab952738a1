/** Which journal events the audit keeps although no ledger transition carries them (S10.3). Pure. */
import type { AuditNote } from './activity-api.ts';
import type { EventType, TaskEvent } from './event.ts';
import { recordOf } from './judge-decision.ts';
import type { JsonObject } from './json.ts';
import type { ProcedureEventType } from './procedure-event.ts';

export const NOTED: readonly EventType[] = [
  'cancel_requested',
  'attempt_abort_requested',
  'run_deadline_passed',
  'retries_exhausted',
  'step_lost',
  'resolve_requested',
  'undo_requested',
  'approval_opened',
  'approval_given',
  'challenge_failed',
  'approval_decided',
  'approval_expired',
  'approval_expiring',
  'sla_missed',
  'decision_held',
  'decision_ignored',
  'remote_cancel_passed',
  'remote_answered',
  'remote_lost',
  'interrupted',
  'resumed',
  'message_ignored',
];

/** Of a procedure's own events. */
export const PROCEDURE_NOTED: readonly ProcedureEventType[] = [
  'procedure_failed',
  'procedure_restarted',
  'child_started',
  'decision_held',
  'cancel_requested',
  'interrupted',
  'resumed',
  'decision_ignored',
  'message_ignored',
  'sla_missed',
  'undo_started',
];

/** The note that the audit keeps of an event, with its place in the journal; null for one that a ledger change records. */
export function noteOf(event: TaskEvent): AuditNote | null {
  const ruled = standingRulesOf(event);
  if (ruled !== null)
    return { type: 'standing_rules_used', at: event.at, data: { seq: event.seq, rules: ruled } };
  if (!NOTED.includes(event.type)) return null;
  return { type: event.type, at: event.at, data: { seq: event.seq, ...toldOf(event) } };
}

/** S4.5: each use of a standing rule is audited, with the plan that it was frozen into. */
function standingRulesOf({ type, data }: TaskEvent): JsonObject[] | null {
  const plan = type === 'task_started' || type === 'planned' || type === 'step_planned' ? data.plan : null;
  return plan?.standingRules?.map(({ id, by }) => ({ id, by })) ?? null;
}

/** What is in the row, in another note or only typed in to be compared is left out. */
function toldOf(event: TaskEvent): JsonObject {
  switch (event.type) {
    case 'resolve_requested': {
      // A resolution's result may hold sensitive fields; the ledger keeps it redacted in the row instead.
      const { as, by, note } = event.data.resolution;
      return { as, by, ...(note !== undefined && { note }) };
    }
    case 'decision_held': {
      const { decision } = event.data;
      const { fingerprint } = decision;
      return {
        ...asJson(recordOf(decision)),
        kind: decision.kind,
        ...(fingerprint !== undefined && { fingerprint }),
      };
    }
    case 'remote_answered': {
      const { attempt, by, answers } = event.data;
      return { attempt, by, keys: Object.keys(answers) };
    }
    case 'approval_decided': {
      if (event.data.decision !== 'edited') return asJson(event.data);
      const { plan, ...told } = event.data;
      return { ...asJson(told), fingerprint: { ...(plan.edited ?? plan).fingerprint } };
    }
    default:
      return asJson(event.data);
  }
}

const asJson = (data: object): JsonObject => data as unknown as JsonObject;
