/** Both stores behind one face, so that one suite runs on each; and the calls that most tests begin with. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import assert from 'node:assert/strict';
import { operationIdOf, rollbackOperationId } from '../../src/contract/ids.ts';
import type {
  Alert,
  ClaimRequest,
  Ledger,
  OperationRow,
  Reservation,
  RollbackClaimRequest,
} from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import type { Claim } from '../../src/task/claim.ts';
import type { Failure } from '../../src/task/failure.ts';
import type { StoredResult, TaskEnd } from '../../src/task/outcome.ts';
import { createTestDatabase } from '../support/postgres.ts';

export type StoreKind = Ledger['kind'];
export const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];

export interface Place {
  ledger: Ledger;
  url: string;
  /** Another ledger on the same database, as another process would have it. */
  another: () => Promise<Ledger>;
  /** Lets `ms` pass by the database's clock. */
  pass: (ms: number) => Promise<void>;
  /** Runs SQL behind the ledger's back. */
  raw: (sql: string) => Promise<Record<string, unknown>[]>;
  close: () => Promise<void>;
}

export async function openPlace(kind: StoreKind): Promise<Place> {
  return kind === 'sqlite' ? openSqlite() : openPostgres();
}

/** In memory where the system has such a place: what a power cut leaves is not what these tests are about. */
const FOLDER = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

async function openSqlite(): Promise<Place> {
  const folder = mkdtempSync(join(FOLDER, 'holdfast-ledger-'));
  const file = join(folder, 'ledger.db');
  const url = `sqlite:${file}`;
  let aheadMs = 0;
  const open = () => openLedger({ url, nowMs: () => Date.now() + aheadMs });
  const opened = [await open()];
  const ledger = opened[0] as Ledger;
  await ledger.migrate();
  return {
    ledger,
    url,
    another: async () => {
      const more = await open();
      opened.push(more);
      return more;
    },
    pass: (ms) => {
      aheadMs += ms;
      return Promise.resolve();
    },
    raw: (sql) => Promise.resolve().then(() => runSqlite(file, sql)),
    close: async () => {
      try {
        for (const each of opened) await each.close();
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  };
}

function runSqlite(file: string, sql: string): Record<string, unknown>[] {
  const database = new Database(file);
  try {
    const statement = database.prepare(sql);
    if (statement.reader) return statement.all() as Record<string, unknown>[];
    statement.run();
    return [];
  } finally {
    database.close();
  }
}

async function openPostgres(): Promise<Place> {
  const database = await createTestDatabase();
  const opened = [await openLedger({ url: database.url })];
  const ledger = opened[0] as Ledger;
  await ledger.migrate();
  return {
    ledger,
    url: database.url,
    another: async () => {
      const more = await openLedger({ url: database.url });
      opened.push(more);
      return more;
    },
    // The server's clock can't be moved; what lies ahead of it can be moved closer.
    pass: async (ms) => {
      await database.query(
        'update operation set claimed_until = claimed_until - $1, attempt_deadline = attempt_deadline - $1',
        [ms],
      );
      await database.query(
        'update outbox set lease_until = lease_until - $1, due_at = greatest(due_at - $1, 0)',
        [ms],
      );
      await database.query(
        `update remote_task set lease_until = lease_until - $1, poll_due_at = poll_due_at - $1, ttl_until = ttl_until - $1,
          cancel_requested_at = cancel_requested_at - $1, updated_at = updated_at - $1`,
        [ms],
      );
      await database.query('update standing_rule set expires_at = expires_at - $1', [ms]);
    },
    raw: database.query,
    close: async () => {
      for (const each of opened) await each.close();
      await database.drop();
    },
  };
}

let counter = 0;
/** A key that no other test uses. */
export const freshKey = (): string => `key-${process.pid}-${(counter += 1)}`;

export const PRINCIPAL = { tenant: 'acme', subject: 'ada', roles: ['buyer'] };
export const RESULT: StoredResult = { kind: 'inline', value: { reservationId: 'r-1' } };
export const NOT_SENT: Failure = {
  kind: 'notApplied',
  code: 'attempt_failed',
  message: 'connection refused',
};
export const IN_DOUBT: Failure = {
  kind: 'unknown',
  code: 'outcome_unknown',
  message: 'timed out after send',
};

const end = (fields: Pick<TaskEnd, 'status' | 'effect' | 'cause'>): TaskEnd => ({
  ...fields,
  error: null,
  cancelRequested: false,
});
export const COMPLETED = end({ status: 'completed', effect: 'applied', cause: 'committed' });
export const CANCELLED = end({ status: 'cancelled', effect: 'none', cause: 'cancelled' });
export const REFUSED = end({ status: 'failed', effect: 'none', cause: 'precondition_failed' });
export const FAILED = end({ status: 'failed', effect: 'none', cause: 'permanent_failure' });
export const ROLLED_BACK = end({ status: 'failed', effect: 'rolled_back', cause: 'verify_failed' });
export const ABANDONED = end({ status: 'failed', effect: 'unknown', cause: 'abandoned' });

export function reservation(key: string, fields: Partial<Reservation> = {}): Reservation {
  const principal = fields.principal ?? PRINCIPAL;
  return {
    operationId: operationIdOf(principal.tenant, 'reserve_inventory', key),
    principal,
    action: 'reserve_inventory',
    key,
    keyed: true,
    contractVersion: 1,
    effect: 'conditional',
    fingerprint: { sent: 'sent-1', input: 'input-1' },
    arguments: { sku: 'bolt', quantity: 2 },
    attach: false,
    ...fields,
  };
}

/** The identity of one task at work on one operation. */
export interface Work {
  operationId: string;
  taskId: string;
  ordinal: number;
}

export async function reserved(ledger: Ledger, fields: Partial<Reservation> = {}): Promise<Work> {
  const request = reservation(fields.key ?? freshKey(), fields);
  const answer = await ledger.reserve(request);
  assert(answer.kind === 'fresh', `expected fresh, got ${answer.kind}`);
  return { operationId: request.operationId, taskId: answer.taskId, ordinal: answer.ordinal };
}

export const claimRequest = (
  work: Work,
  attempt: number,
  fields: Partial<ClaimRequest> = {},
): ClaimRequest => ({
  ...work,
  attempt,
  claimMs: 30_000,
  attemptMs: 10_000,
  executing: true,
  notes: [],
  ...fields,
});

export async function claimed(
  ledger: Pick<Ledger, 'claim'>,
  work: Work,
  attempt = 1,
  fields: Partial<ClaimRequest> = {},
): Promise<Claim> {
  const answer = await ledger.claim(claimRequest(work, attempt, fields));
  assert(answer.kind === 'granted', `expected granted, got ${answer.kind}`);
  return answer.claim;
}

export const alertAbout = (work: Work, type: Alert['type'] = 'needs_attention'): Alert => ({
  type,
  taskId: work.taskId,
  operationId: work.operationId,
  tenant: PRINCIPAL.tenant,
  action: 'reserve_inventory',
  message: 'a person should look',
  data: { operationId: work.operationId },
});

export const rollbackRequest = (
  work: Work,
  attempt: number,
  fields: Partial<RollbackClaimRequest> = {},
): RollbackClaimRequest => ({
  parentOperationId: work.operationId,
  operationId: rollbackOperationId(work.operationId),
  taskId: work.taskId,
  ordinal: work.ordinal,
  attempt,
  claimMs: 30_000,
  attemptMs: 10_000,
  reason: 'verify_failed',
  notes: [],
  ...fields,
});

export async function rollbackClaimed(ledger: Ledger, work: Work, attempt: number): Promise<Claim> {
  const answer = await ledger.claimRollback(rollbackRequest(work, attempt));
  assert(answer.kind === 'granted', `expected granted, got ${answer.kind}`);
  return answer.claim;
}

export async function rowOf(
  ledger: Ledger,
  { operationId }: Pick<Work, 'operationId'>,
): Promise<OperationRow> {
  const row = await ledger.find(operationId);
  assert(row, 'the operation has a row');
  return row;
}

/** The audit's types of one task, in order. */
export const auditTypes = async (ledger: Ledger, { taskId }: Pick<Work, 'taskId'>): Promise<string[]> =>
  (await ledger.audit({ taskId })).map((entry) => entry.type);
