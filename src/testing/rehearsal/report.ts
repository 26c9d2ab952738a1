/** What a rehearsal found: plain JSON, for an auditor. */
import type { AuditEntry } from '../../ledger/ledger.ts';
import type { JsonObject } from '../../task/json.ts';
import type { HandlerName } from './scripts.ts';

export interface ScenarioReport {
  group: string;
  /** What was done to the operation, in words. */
  scenario: string;
  /** Rules of the semantics it is about, such as `S2.11`. */
  rules: string[];
  verdict: 'kept' | 'broken';
  /** Each broken promise in words; empty when all were kept. */
  broken: string[];
  key: string;
  operationId: string;
  taskId: string;
  /** By the target's own count; null when it could not be asked. */
  effects: number | null;
  /** Null where the rehearsal has no `undone`. */
  undone: number | null;
  end: string;
  /** The ends that keep the promise. */
  allowed: string[];
  /** How often each of the user's handlers was called. */
  calls: Partial<Record<HandlerName, number>>;
  alerts: string[];
  audit: { intact: boolean; entries: number; lastHash: string | null };
  durationMs: number;
  /** Of a procedure: each step, in the order they began. The counts above are their sums. */
  steps?: StepReport[];
}

export interface StepReport {
  step: string;
  action: string;
  operationId: string;
  /** What the task says of it: `applied`, `rolled_back`, `none`, `unknown`; null where it never began. */
  said: string | null;
  effects: number | null;
  undone: number | null;
  calls: Partial<Record<HandlerName, number>>;
}

export interface RehearsalReport {
  /** Its name, or a procedure's. */
  action: string;
  contractVersion: number;
  effect: string;
  lookup: string;
  rollback: string;
  onCancel: string;
  /** Whom policy asks about the rehearsal's arguments, and what follows where nobody answers. */
  approval: string;
  /** Of the first operation, sensitive fields redacted. */
  args: JsonObject;
  /** False when any promise was broken. */
  ok: boolean;
  /** One line for each broken promise: `scenario: what`. */
  broken: string[];
  scenarios: ScenarioReport[];
  /** What was not rehearsed, and why. */
  skipped: { group: string; scenario: string; reason: string }[];
  /** What the count could not show. */
  notes: string[];
  startedAt: string;
  durationMs: number;
  node: string;
  /** Every entry of the rehearsal's ledger; `verifyAuditExport` and `holdfast audit verify --file` check it. */
  audit: AuditEntry[];
}
