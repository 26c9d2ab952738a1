/** Connections of SQLite: opened, run, and lent to one transaction at a time. */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import Database from 'better-sqlite3';
import type { CompiledQuery, QueryResult } from 'kysely';
import { Connection } from './connection.ts';
import { driverCode, unavailable } from './store-error.ts';

/** How long a lock is asked for before the caller is told. */
const BUSY_BOUND_MS = 10_000;
const STATEMENTS_CACHED_MAX = 500;

interface Ran {
  rows: unknown[];
  changes: number;
  insertId?: bigint;
}

export class SqliteConnection extends Connection {
  readonly #database: Database.Database;
  readonly #prepared = new Map<string, Database.Statement>();

  constructor(database: Database.Database) {
    super();
    this.#database = database;
  }

  run(sql: string, parameters: readonly unknown[] = []): Ran {
    if (!this.#database.open) throw unavailable('SQLITE_CLOSED', 'rolled_back');
    const statement = this.#prepare(sql);
    if (statement.reader) return { rows: statement.all(...parameters), changes: 0 };
    const { changes, lastInsertRowid } = statement.run(...parameters);
    return { rows: [], changes, insertId: BigInt(lastInsertRowid) };
  }

  get inTransaction(): boolean {
    return this.#database.inTransaction;
  }

  /** SQLite itself rolls back after some errors (a full disk), so there may be nothing left to roll back. */
  rollBack(): void {
    if (this.#database.inTransaction) this.run('rollback');
  }

  close(): void {
    this.#prepared.clear();
    this.#database.close();
  }

  /** A read may meet another process that recovers or closes the file. */
  override async executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    return resultOf<Row>(await whileBusy(() => this.run(sql, parameters)));
  }

  #prepare(sql: string): Database.Statement {
    const known = this.#prepared.get(sql);
    if (known) return known;
    if (this.#prepared.size >= STATEMENTS_CACHED_MAX) this.#prepared.clear();
    const statement = this.#database.prepare(sql);
    this.#prepared.set(sql, statement);
    return statement;
  }
}

/** The writer while one transaction has it: of no use to whoever kept it for later. */
export class SqliteTransaction extends Connection {
  isOver = false;
  readonly #writer: SqliteConnection;

  constructor(writer: SqliteConnection) {
    super();
    this.#writer = writer;
  }

  run(sql: string, parameters: readonly unknown[] = []): Ran {
    assert(!this.isOver, 'this transaction is over');
    // After some errors (a full disk) SQLite has rolled back by itself; what follows would be committed on its own.
    if (!this.#writer.inTransaction) throw unavailable('SQLITE_ABORT', 'rolled_back');
    return this.#writer.run(sql, parameters);
  }

  override executeQuery<Row>({ sql, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    return Promise.resolve().then(() => resultOf<Row>(this.run(sql, parameters)));
  }
}

const resultOf = <Row>({ rows, changes, insertId }: Ran): QueryResult<Row> => ({
  rows: rows as Row[],
  numAffectedRows: BigInt(changes),
  ...(insertId !== undefined && { insertId }),
});

/** Asks again while another process holds the lock. Jitter, so that those who met once don't meet again. */
export async function whileBusy<T>(work: () => T): Promise<T> {
  for (const deadline = Date.now() + BUSY_BOUND_MS; ; await delay(1 + Math.random() * 8)) {
    try {
      return work();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (Date.now() >= deadline) throw unavailable(driverCode(error), 'rolled_back');
    }
  }
}

export async function openDatabase(path: string, pragmas: string[]): Promise<Database.Database> {
  // timeout 0: the driver's own wait blocks the event loop.
  const database = new Database(path, { timeout: 0 });
  try {
    for (const pragma of ['synchronous = FULL', 'foreign_keys = ON', ...pragmas]) {
      await whileBusy(() => database.pragma(pragma));
    }
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

const isBusy = (error: unknown): boolean => /^SQLITE_(BUSY|LOCKED)/.test(driverCode(error));
