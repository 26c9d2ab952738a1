/**
 * The ledger on PostgreSQL: any number of processes and hosts.
 *
 * 1. READ COMMITTED; whatever is decided is decided under row locks, taken in the order of S10.2, so that a statement
 *    sees what its lock protects.
 * 2. Writes are sent without waiting for their answers, the commit behind them: a transition is two round trips. One
 *    that fails makes the commit a rollback, and the transaction throws.
 * 3. A transaction is begun anew only when the first is provably not in the database (serialization failure, deadlock,
 *    connection lost before the commit was sent), or when the method's guards make the repeat find what the first did.
 * 4. A frozen process can't hold a lock for long: the server ends a transaction that idles.
 */
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { PostgresAdapter, PostgresIntrospector, PostgresQueryCompiler, sql } from 'kysely';
import type { Kysely } from 'kysely';
import pg from 'pg';
import { HoldfastError } from '../contract/error.ts';
import { bounded } from './bounded.ts';
import { compilerOf, kyselyOn, kyselyOver } from './connection.ts';
import type { DialectParts } from './connection.ts';
import { PostgresConnection, StatementNames } from './postgres-connection.ts';
import type { OperationTable, Schema } from './schema.ts';
import { StatementCache } from './statement.ts';
import type { Statement } from './statement.ts';
import type { Clock, LockedOperation, Store, TransactionOptions, Tx } from './store.ts';
import { driverCode, isConnectionError, unavailable } from './store-error.ts';

const CONNECTIONS_MAX = 10;
const CONNECT_BOUND_MS = 5_000;
const TRIES_MAX = 5;
/** As `server_version_num` has it: the oldest that the tests run on. */
const OLDEST_SERVER = 150_000;
/** No answer for so long means a connection that nobody ends: it counts as lost. */
const ANSWER_BOUND_MS = 30_000;
/** Who holds a lock and sleeps is ended before those who wait for the lock give up. */
const BEGIN = [
  'begin isolation level read committed',
  "set local lock_timeout = '10s'",
  "set local idle_in_transaction_session_timeout = '5s'",
].join('; ');

/** PostgreSQL rolled one of two conflicting transactions back: serialization failure, deadlock. */
const CONFLICT = ['40001', '40P01'];
/** The server lost a prepared statement (a pooler gave us another session), or a migration changed what it answers. */
const STATEMENT_LOST = ['26000', '42P05', '0A000'];

const parts: DialectParts = {
  createAdapter: () => new PostgresAdapter(),
  createIntrospector: (db) => new PostgresIntrospector(db),
  createQueryCompiler: () => new PostgresQueryCompiler(),
};

const CLOCK: Clock = {
  value: () => 0,
  expression: () => sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)::bigint`,
};

/** bigint as number: every such column stays far below 2^53. */
const types = {
  getTypeParser: ((oid: number, format?: 'text' | 'binary') =>
    oid === pg.types.builtins.INT8
      ? Number
      : pg.types.getTypeParser(oid, format)) as typeof pg.types.getTypeParser,
};

export class PostgresStore implements Store {
  readonly kind = 'postgres';
  readonly statements = new StatementCache(compilerOf(parts));
  readonly clock = CLOCK;
  readonly reads: Kysely<Schema>;
  readonly #pool: pg.Pool;
  readonly #names = new StatementNames();

  constructor(url: string) {
    this.#pool = new pg.Pool({
      connectionString: url,
      application_name: 'holdfast',
      max: CONNECTIONS_MAX,
      connectionTimeoutMillis: CONNECT_BOUND_MS,
      query_timeout: ANSWER_BOUND_MS,
      keepAlive: true,
      types,
      pipeline: true,
    });
    // A connection that breaks says so to whoever uses it; without a listener it would end the process.
    this.#pool.on('error', () => undefined);
    this.reads = kyselyOver(parts, {
      acquire: () => this.#connect(),
      release: (connection) => (connection as PostgresConnection).release(),
    });
  }

  async now(): Promise<number> {
    const [row] = await this.query<{ now: number }>(nowStatement(this.statements));
    assert(row);
    return row.now;
  }

  query = <Row>(statement: Statement): Promise<Row[]> =>
    this.#repeating({ afterLostCommit: 'repeat', retry: true }, async (connection) => {
      connection.commitSent = true;
      return connection.query<Row>(statement);
    });

  read = this.query;

  transaction = <T>(work: (tx: Tx) => Promise<T>, options: TransactionOptions): Promise<T> =>
    this.#repeating(options, async (connection) => {
      connection.send({ sql: BEGIN, parameters: [] });
      try {
        const answer = await bounded(work(this.#tx(connection)), options.boundMs);
        await connection.commit();
        return answer;
      } catch (error) {
        throw await connection.rollBack(error);
      }
    });

  async checkPlace(): Promise<void> {
    const [row] = await this.query<{ version: number }>({
      sql: "select current_setting('server_version_num')::integer as version",
      parameters: [],
    });
    assert(row);
    if (row.version >= OLDEST_SERVER) return;
    throw new HoldfastError(
      'ledger_unsuitable',
      `The ledger’s PostgreSQL is version ${Math.floor(row.version / 10_000)}. Use ${OLDEST_SERVER / 10_000} or newer.`,
      { details: { version: row.version, expected: OLDEST_SERVER } },
    );
  }

  close = (): Promise<void> => this.#pool.end();

  async #connect(): Promise<PostgresConnection> {
    return new PostgresConnection(await this.#pool.connect(), this.#names);
  }

  async #repeating<T>(
    { afterLostCommit, retry }: TransactionOptions,
    work: (connection: PostgresConnection) => Promise<T>,
  ): Promise<T> {
    let isUnknown = false;
    for (let tries = 1; ; tries += 1) {
      let connection: PostgresConnection | null = null;
      try {
        connection = await this.#connect();
        return await work(connection);
      } catch (error) {
        const code = driverCode(error);
        const isLost = isConnectionError(error);
        const isStatementLost = STATEMENT_LOST.includes(code);
        if (connection && (isLost || isStatementLost)) connection.isBroken = true;
        if (code === '26000' || code === '42P05') this.#names.forget();
        const lostCommit = isLost && connection?.commitSent === true;
        isUnknown ||= lostCommit;
        const isRolledBack = isLost || isStatementLost || CONFLICT.includes(code);
        const mayRepeat = lostCommit ? afterLostCommit === 'repeat' : isRolledBack;
        if (!retry || !mayRepeat || tries >= TRIES_MAX)
          throw isUnknown ? unavailable(code, 'unknown') : error;
      } finally {
        connection?.release();
      }
      await delay(Math.random() * 20 * 2 ** tries);
    }
  }

  #tx(connection: PostgresConnection): Tx {
    const { statements } = this;
    let kysely: Kysely<Schema> | null = null;
    return {
      statements,
      clock: CLOCK,
      get kysely() {
        return (kysely ??= kyselyOn(parts, connection));
      },
      now: async () => {
        const [row] = await connection.query<{ now: number }>(nowStatement(statements));
        assert(row);
        return row.now;
      },
      lockOperation: (operationId) => lockOperation(connection, statements, operationId),
      send: (statement, rows) => connection.send(statement, rows),
      query: (statement) => connection.query(statement),
      read: (statement) => connection.query(statement),
    };
  }
}

const nowStatement = (statements: StatementCache): Statement =>
  statements.get('now', {}, (db) => db.selectNoFrom(CLOCK.expression(0).as('now')));

type LockedRecord = OperationTable & { head_seq: number; head_hash: string; now: number };

/**
 * Row, then head, then the clock, in one statement. The row may have moved to another task while its lock was waited
 * for; then the head that this statement's snapshot knows is not the row's, and the statement is run again.
 */
async function lockOperation(
  connection: PostgresConnection,
  statements: StatementCache,
  operationId: string,
): Promise<LockedOperation | null> {
  const lock = statements.get('lock operation', { operationId }, (db, slots) =>
    db
      .with(
        (cte) => cte('o').materialized(),
        (inner) =>
          inner.selectFrom('operation').selectAll().where('operation_id', '=', slots.operationId).forUpdate(),
      )
      .selectFrom('o')
      .innerJoin('audit_head as h', 'h.task_id', 'o.task_id')
      .selectAll('o')
      .select(['h.seq as head_seq', 'h.hash as head_hash', CLOCK.expression(0).as('now')])
      .forUpdate('h'),
  );
  const [row] = await connection.query<LockedRecord>(lock);
  if (!row)
    return (await exists(connection, statements, operationId))
      ? lockOperation(connection, statements, operationId)
      : null;
  const { head_seq: seq, head_hash: hash, now, ...record } = row;
  return { record, head: { seq, hash }, now };
}

async function exists(
  connection: PostgresConnection,
  statements: StatementCache,
  operationId: string,
): Promise<boolean> {
  const rows = await connection.query(
    statements.get('operation with head', { operationId }, (db, slots) =>
      db
        .selectFrom('operation as o')
        .innerJoin('audit_head as h', 'h.task_id', 'o.task_id')
        .select('o.operation_id')
        .where('o.operation_id', '=', slots.operationId),
    ),
  );
  return rows.length > 0;
}
