/**
 * The ledger on SQLite: one machine, one file.
 *
 * Owns two connections, a writer behind a queue and a reader that sees the last commit. Never blocks the event loop to
 * wait for another process: a busy database is asked again later, up to a bound.
 *
 * 1. WAL, `synchronous=FULL`: a commit that was answered survives a power cut.
 * 2. At most one transaction of the database is open, and it began with `BEGIN IMMEDIATE`: it never has to give up its
 *    snapshot in the middle, so only its beginning can meet SQLITE_BUSY. It may hold several of ours (group-commit.ts).
 * 3. While a transaction is open, nothing but its work uses the writer. Reads in between do: the writer knows its own
 *    commits, where the reader has to read its pages anew after each.
 */
import assert from 'node:assert/strict';
import { closeSync, mkdirSync, openSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type Database from 'better-sqlite3';
import { SqliteAdapter, SqliteIntrospector, SqliteQueryCompiler, sql } from 'kysely';
import type { Kysely } from 'kysely';
import { HoldfastError } from '../contract/error.ts';
import { bounded } from './bounded.ts';
import { compilerOf, kyselyOn } from './connection.ts';
import type { DialectParts } from './connection.ts';
import { GroupCommit } from './group-commit.ts';
import type { OperationTable, Schema } from './schema.ts';
import { SqliteConnection, SqliteTransaction, openDatabase, whileBusy } from './sqlite-connection.ts';
import { StatementCache } from './statement.ts';
import type { Statement } from './statement.ts';
import type { Clock, LockedOperation, Store, TransactionOptions, Tx } from './store.ts';
import { driverCode, unavailable } from './store-error.ts';

const parts: DialectParts = {
  createAdapter: () => new SqliteAdapter(),
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
};

interface SqliteOptions {
  path: string;
  nowMs: () => number;
}

export class SqliteStore implements Store {
  readonly kind = 'sqlite';
  readonly statements = new StatementCache(compilerOf(parts));
  readonly reads;
  readonly clock: Clock;
  readonly #path: string;
  readonly #nowMs: () => number;
  readonly #writer: SqliteConnection;
  readonly #reader: SqliteConnection;
  readonly #group: GroupCommit;
  #queue: Promise<unknown> = Promise.resolve();

  static async open({ path, nowMs }: SqliteOptions): Promise<SqliteStore> {
    const isMemory = path === ':memory:';
    const place = isMemory ? path : resolve(path);
    if (!isMemory) createPrivately(place);
    const writer = await openDatabase(place, ['journal_mode = WAL']);
    if (isMemory) return new SqliteStore(place, nowMs, writer, writer);
    try {
      return new SqliteStore(place, nowMs, writer, await openDatabase(place, ['query_only = ON']));
    } catch (error) {
      writer.close();
      throw error;
    }
  }

  /** A database in memory has no second connection: its reads may see an open transaction (tests only). */
  private constructor(
    path: string,
    nowMs: () => number,
    writer: Database.Database,
    reader: Database.Database,
  ) {
    this.#path = path;
    this.#nowMs = nowMs;
    this.clock = { value: nowMs, expression: (value) => sql`${value}` };
    this.#writer = new SqliteConnection(writer);
    this.#reader = reader === writer ? this.#writer : new SqliteConnection(reader);
    this.reads = kyselyOn(parts, this.#reader);
    this.#group = new GroupCommit({
      writer: this.#writer,
      commit: () => this.#commit(),
      exclusively: (work) => this.#exclusively(work),
    });
  }

  now = (): Promise<number> => Promise.resolve(this.#nowMs());

  query = <Row>(statement: Statement): Promise<Row[]> =>
    this.#exclusively(() =>
      whileBusy(() => this.#writer.run(statement.sql, statement.parameters).rows as Row[]),
    );

  read = <Row>({ sql: text, parameters }: Statement): Promise<Row[]> =>
    whileBusy(() => {
      const connection = this.#writer.inTransaction ? this.#reader : this.#writer;
      return connection.run(text, parameters).rows as Row[];
    });

  transaction = <T>(work: (tx: Tx) => Promise<T>, { retry, boundMs }: TransactionOptions): Promise<T> =>
    retry
      ? this.#group.join((transaction) => work(this.#tx(transaction)))
      : this.#exclusively(() => this.#alone(work, boundMs));

  /** Work that may take its time, or does more than change the database, holds up nobody's commit but its own. */
  async #alone<T>(work: (tx: Tx) => Promise<T>, boundMs: number | undefined): Promise<T> {
    await whileBusy(() => this.#writer.run('begin immediate'));
    const transaction = new SqliteTransaction(this.#writer);
    try {
      const answer = await bounded(work(this.#tx(transaction)), boundMs);
      transaction.isOver = true;
      this.#commit();
      return answer;
    } catch (error) {
      transaction.isOver = true;
      this.#writer.rollBack();
      throw error;
    }
  }

  async checkPlace(): Promise<void> {
    if (this.#path === ':memory:') return;
    const { type } = await statfs(this.#path);
    const shared = SHARED_FILE_SYSTEMS.get(type);
    if (shared === undefined) return;
    throw new HoldfastError(
      'ledger_unsuitable',
      `The SQLite ledger lies on a file system shared by hosts (${shared}), where its locks do not hold. Use a local disk, or PostgreSQL.`,
    );
  }

  close(): Promise<void> {
    return this.#exclusively(() => {
      this.#writer.close();
      this.#reader.close();
      return Promise.resolve();
    });
  }

  /** One after the other, in the order of the calls, whether the one before succeeded or not. */
  #exclusively<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#queue.then(work, work);
    this.#queue = turn.catch(() => undefined);
    return turn;
  }

  /** After an error of the disk itself the commit record may still be found when the file is opened next. */
  #commit(): void {
    if (!this.#writer.inTransaction) throw unavailable('SQLITE_ABORT', 'rolled_back');
    try {
      this.#writer.run('commit');
    } catch (error) {
      throw unavailable(driverCode(error), 'unknown');
    }
  }

  #tx(transaction: SqliteTransaction): Tx {
    let kysely: Kysely<Schema> | null = null;
    const query = <Row>({ sql: text, parameters }: Statement): Promise<Row[]> =>
      Promise.resolve().then(() => transaction.run(text, parameters).rows as Row[]);
    return {
      statements: this.statements,
      clock: this.clock,
      get kysely() {
        return (kysely ??= kyselyOn(parts, transaction));
      },
      now: this.now,
      lockOperation: (operationId) =>
        Promise.resolve().then(() => this.#lockOperation(transaction, operationId)),
      send: ({ sql: text, parameters }, rows) => {
        const { changes } = transaction.run(text, parameters);
        if (rows !== undefined) assert.equal(changes, rows, 'a guarded write changed another number of rows');
      },
      query,
      read: query,
    };
  }

  /** The open transaction holds the database's only write lock, so reading is locking. */
  #lockOperation(transaction: SqliteTransaction, operationId: string): LockedOperation | null {
    const { sql: text, parameters } = this.statements.get('lock operation', { operationId }, (db, slots) =>
      db
        .selectFrom('operation as o')
        .innerJoin('audit_head as h', 'h.task_id', 'o.task_id')
        .selectAll('o')
        .select(['h.seq as head_seq', 'h.hash as head_hash'])
        .where('o.operation_id', '=', slots.operationId),
    );
    const [row] = transaction.run(text, parameters).rows as (OperationTable & {
      head_seq: number;
      head_hash: string;
    })[];
    if (!row) return null;
    const { head_seq: seq, head_hash: hash, ...record } = row;
    return { record, head: { seq, hash }, now: this.#nowMs() };
  }
}

/** The file holds business data: only its owner may read it. */
function createPrivately(path: string): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', 0o600));
}

/** statfs magic numbers of file systems whose locks or shared memory do not hold between hosts. */
const SHARED_FILE_SYSTEMS: ReadonlyMap<number, string> = new Map([
  [0x6969, 'NFS'],
  [0x517b, 'SMB'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB2'],
  [0x01021997, '9P'],
  [0x00c36400, 'Ceph'],
  [0x5346414f, 'AFS'],
  [0x0bd00bd0, 'Lustre'],
  [0x47504653, 'GPFS'],
  [0x01161970, 'GFS2'],
  [0x7461636f, 'OCFS2'],
]);
