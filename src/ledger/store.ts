/**
 * The seam between the ledger's rules and the two databases. Everything else in this folder is written once.
 */
import type { Kysely, RawBuilder } from 'kysely';
import type { OperationTable, Schema } from './schema.ts';
import type { Statement, StatementCache } from './statement.ts';

/** An operation as it stands under this transaction's lock, with its task's chain head and the database's clock. */
export interface LockedOperation {
  record: OperationTable;
  head: ChainHead;
  now: number;
}

export interface ChainHead {
  seq: number;
  hash: string;
}

/** The one clock that decides (S8.5), for use inside a statement: its value where the database asks us, else its expression. */
export interface Clock {
  value: () => number;
  expression: (value: number) => RawBuilder<number>;
}

/** Where a single statement can be run: in a transaction of its own, or in an open one. */
export interface Queries {
  readonly statements: StatementCache;
  readonly clock: Clock;
  query<Row>(statement: Statement): Promise<Row[]>;
  /** For a statement that changes nothing: never waits for a writer. */
  read<Row>(statement: Statement): Promise<Row[]>;
}

/** One open transaction. */
export interface Tx extends Queries {
  /** The transaction as Kysely, for rare statements and for users' own (S2.8). Can't begin another inside. */
  readonly kysely: Kysely<Schema>;
  /** The database's clock, now. */
  now(): Promise<number>;
  /** S10.2: locks the row, then its chain head. Null when there is no such row. */
  lockOperation(operationId: string): Promise<LockedOperation | null>;
  /**
   * Runs a write whose answer isn't needed; at latest the commit throws if it failed. `rows`: how many rows it must
   * change, or the transaction is a defect and rolled back.
   */
  send(statement: Statement, rows?: number): void;
}

/** What a caller may be told when the connection is lost while the commit is under way. */
export type AfterLostCommit =
  /** The work may be done a second time: its guards make the repeat find what the first did. */
  | 'repeat'
  /** Only the caller can tell whether to repeat. */
  | 'report';

export interface TransactionOptions {
  afterLostCommit: AfterLostCommit;
  /** May `work` be run again after the database provably rolled it back? */
  retry: boolean;
  /** After so long the transaction is rolled back, whatever `work` still does. */
  boundMs?: number;
}

export interface Store extends Queries {
  readonly kind: 'sqlite' | 'postgres';
  /** For reads outside a transaction. */
  readonly reads: Kysely<Schema>;
  /**
   * Runs `work` in one transaction (SQLite `BEGIN IMMEDIATE`, PostgreSQL READ COMMITTED) and commits. With `retry`,
   * `work` must change nothing but the database. Throws what `work` throws, after rolling back.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>, options: TransactionOptions): Promise<T>;
  now(): Promise<number>;
  /** Throws `ledger_unsuitable` for a place no ledger may live in (S10.1). */
  checkPlace(): Promise<void>;
  close(): Promise<void>;
}
