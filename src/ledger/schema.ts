/**
 * The tables as Kysely sees them, the same on both stores: text, numbers and bytes only. JSON is text (canonical), so
 * that no database normalises what a hash was made of; truth values are 0 and 1; times are milliseconds since the epoch.
 */
import type { Generated } from 'kysely';
import type { EffectClass } from '../task/plan.ts';
import type { RowState } from './ledger.ts';
import type { RemoteCall, RemotePhase } from './remote-tasks.ts';

export interface OperationTable {
  operation_id: string;
  tenant: string;
  subject: string;
  action: string;
  key: string;
  keyed: number;
  contract_version: number;
  effect: EffectClass;
  state: RowState;
  ordinal: number;
  task_id: string;
  attempt: number;
  generation: number;
  claimed_until: number | null;
  attempt_deadline: number | null;
  executions: number;
  fingerprint_sent: string;
  fingerprint_input: string;
  arguments: string;
  result: string | null;
  failure: string | null;
  attention_about: 'effect' | 'rollback' | null;
  task_end: string | null;
  late_outcome: string | null;
  parent_operation_id: string | null;
  /** 1 while an equal keyless call may attach (M1.4); the partial unique index covers only those rows. */
  attachable: number;
  created_at: number;
  updated_at: number;
  /** S4.2, since schema 2: the edit whose arguments were claimed for; null when the request's were. */
  edited: string | null;
}

/** One granted claim each. A generation is unique in its operation, since it never resets. */
interface AttemptTable {
  operation_id: string;
  generation: number;
  ordinal: number;
  attempt: number;
  task_id: string;
  claimed_at: number;
  executing: number;
  outcome: string | null;
  finished_at: number | null;
}

interface AuditTable {
  task_id: string;
  seq: number;
  operation_id: string;
  tenant: string;
  type: string;
  at: string;
  data: string;
  hash: string;
}

interface AuditHeadTable {
  task_id: string;
  tenant: string;
  seq: number;
  hash: string;
  created_at: number;
}

interface FenceTable {
  resource: string;
  fence: number;
  updated_at: number;
}

interface OutboxTable {
  id: Generated<number>;
  type: string;
  task_id: string;
  operation_id: string;
  tenant: string;
  action: string;
  message: string;
  data: string;
  created_at: number;
  attempts: Generated<number>;
  lease_until: number | null;
  token: string | null;
  sent_at: number | null;
  last_error: string | null;
  due_at: Generated<number>;
  dead_at: number | null;
}

export interface StandingRuleTable {
  id: string;
  tenant: string;
  action: string;
  contract_version: number;
  covers: string;
  made_by: string;
  roles: string;
  reason: string | null;
  task_id: string | null;
  made_at: number;
  expires_at: number;
  revoked_at: number | null;
  revoked_by: string | null;
  revoke_reason: string | null;
}

/** S8.4, since schema 5. One row an operation: its newest remote task. */
export interface RemoteTaskTable {
  operation_id: string;
  task_id: string;
  tenant: string;
  action: string;
  server: string;
  tool: string;
  remote_id: string;
  poll_interval_ms: number;
  ttl_ms: number | null;
  ttl_until: number | null;
  in_doubt_before: number;
  phase: RemotePhase;
  seen: string | null;
  result: string | null;
  answered: string;
  failures: number;
  last_error: string | null;
  seq: number;
  poll_due_at: number;
  last_polled_at: number | null;
  cancel_requested_at: number | null;
  cancel_sent_at: number | null;
  /** The claim is on while `lease_until` is set; the token stays, so that a repeated write is known. */
  worker: string | null;
  token: string | null;
  claimed_for: RemoteCall | null;
  lease_until: number | null;
  started_at: number;
  updated_at: number;
}

interface PayloadTable {
  tenant: string;
  sha256: string;
  bytes: number;
  value: Buffer;
  created_at: number;
}

interface UpstreamTable {
  identity: string;
  tools: string;
  gone: string;
  seen_at: number;
}

interface UpstreamBeforeTable {
  operation_id: string;
  tenant: string;
  value: string;
  kept_at: number;
}

interface MigrationTable {
  version: number;
  name: string;
  applied_at: number;
}

export interface Schema {
  operation: OperationTable;
  attempt: AttemptTable;
  audit: AuditTable;
  audit_head: AuditHeadTable;
  fence: FenceTable;
  outbox: OutboxTable;
  payload: PayloadTable;
  standing_rule: StandingRuleTable;
  remote_task: RemoteTaskTable;
  upstream: UpstreamTable;
  upstream_before: UpstreamBeforeTable;
  migration: MigrationTable;
}
