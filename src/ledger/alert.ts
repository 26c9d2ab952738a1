/** Alerts and the outbox they wait in (S6.5, S9): a part of the ledger, kept in outbox.ts. */
import type { JsonObject } from '../task/json.ts';

/** A message for a person, committed with the state it announces (S6.5, S9). */
export interface Alert {
  type:
    | 'verify_failed'
    | 'needs_attention'
    | 'rollback_failed'
    | 'possible_duplicate'
    | 'approval_expired'
    | 'approval_reminder'
    | 'approval_expiring'
    | 'sla_missed'
    | 'remote_unreachable'
    | 'remote_cancel_late';
  taskId: string;
  operationId: string;
  tenant: string;
  action: string;
  message: string;
  data: JsonObject;
}

export interface OutboxMessage {
  id: number;
  alert: Alert;
  createdAt: number;
  attempts: number;
  /** Proof of the claim; `markSent` and `giveBack` need it. */
  token: string;
}

/** `waiting`: to be delivered, or being. `dead`: given up after too many tries, until a person says `redeliver`. */
export type AlertState = 'waiting' | 'sent' | 'dead';

/** An alert as the outbox keeps it, with what became of its delivery. */
export interface StoredAlert extends Alert {
  id: number;
  state: AlertState;
  createdAt: number;
  sentAt: number | null;
  deadAt: number | null;
  /** Deliveries begun since it was written or last asked for again. */
  attempts: number;
  /** Why the newest try failed. */
  lastError: string | null;
}

export interface Outbox {
  /** S9: claims up to `limit` messages that are due for `leaseMs`. */
  claimOutbox(limit: number, leaseMs: number): Promise<OutboxMessage[]>;
  markSent(id: number, token: string): Promise<boolean>;
  /** Due again after `delayMs`. `error` null: it was not tried, and the claim counts as no attempt. */
  giveBack(id: number, token: string, error: string | null, delayMs: number): Promise<boolean>;
  /** A dead letter from now on: no relay claims it. */
  bury(id: number, token: string, error: string): Promise<boolean>;
  /** Milliseconds until a message may be claimed, 0 where one may now; null when none waits. Changes nothing. */
  outboxDueMs(): Promise<number | null>;
  /** Has one alert (`id`, also a sent one), or every dead one, delivered again under its own id; audited. Answers the ids. */
  redeliver(request: { tenant: string; id?: number; by: string }): Promise<number[]>;
  /** Newest first. */
  alerts(filter: {
    tenant: string;
    taskId?: string;
    state?: AlertState;
    limit?: number;
  }): Promise<StoredAlert[]>;
  /** Called once after each transaction of this process that wrote to the outbox. */
  onOutbox(listener: () => void): () => void;
}
