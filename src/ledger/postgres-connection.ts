/** One connection of PostgreSQL while one piece of work has it. */
import assert from 'node:assert/strict';
import type { CompiledQuery, QueryResult } from 'kysely';
import type pg from 'pg';
import { Connection } from './connection.ts';
import type { Statement } from './statement.ts';
import { driverCode, unavailable } from './store-error.ts';

/**
 * Names under which the server keeps our statements prepared: planning one costs more than running it. Behind a pooler
 * that does not carry prepared statements over (`forget` is called when one was lost), statements go without.
 */
export class StatementNames {
  readonly #names = new Map<string, string>();
  #areLost = false;

  of(text: string): { name?: string } {
    if (this.#areLost) return {};
    let name = this.#names.get(text);
    if (name === undefined) this.#names.set(text, (name = `holdfast_${this.#names.size}`));
    return { name };
  }

  forget(): void {
    this.#areLost = true;
  }
}

const DIVISION_BY_ZERO = '22012';
const GUARD_FAILED = 'a guarded write changed another number of rows';

/** Fails in the database: the commit is sent before the answer is there, and must find a transaction that failed. */
const guarded = (text: string, rows: number): string =>
  `with changed as (${text} returning 1) select 1 / (count(*) = ${rows})::int from changed`;

export class PostgresConnection extends Connection {
  /** Its transaction is over: of no use to whoever kept it for later. */
  #isOver = false;
  isBroken = false;
  /** From here on a lost connection leaves it open whether the work is in the database. */
  commitSent = false;
  readonly #client: pg.PoolClient;
  readonly #names: StatementNames;
  readonly #sent: Promise<unknown>[] = [];
  readonly #onLost = (): void => {
    this.isBroken = true;
  };

  constructor(client: pg.PoolClient, names: StatementNames) {
    super();
    this.#client = client;
    this.#names = names;
    // Without a listener a connection that breaks while nobody waits for it would end the process.
    client.on('error', this.#onLost);
  }

  release(): void {
    this.#client.off('error', this.#onLost);
    this.#client.release(this.isBroken);
  }

  async query<Row>({ sql: text, parameters }: Statement): Promise<Row[]> {
    this.#assertOpen();
    const { rows } = await this.#client.query<Row & object>({
      text,
      values: [...parameters],
      ...this.#names.of(text),
    });
    return rows;
  }

  /** Sent at once, awaited by `commit`. */
  send({ sql, parameters }: Statement, rows?: number): void {
    this.#assertOpen();
    const text = rows === undefined ? sql : guarded(sql, rows);
    // Without parameters a text may hold several statements, which can't be prepared.
    const query =
      parameters.length > 0 ? { text, values: [...parameters], ...this.#names.of(text) } : { text };
    const sent = this.#client.query(query).catch((error: unknown) => {
      assert(rows === undefined || driverCode(error) !== DIVISION_BY_ZERO, GUARD_FAILED);
      throw error;
    });
    sent.catch(() => undefined);
    this.#sent.push(sent);
  }

  async commit(): Promise<void> {
    if (this.isBroken)
      throw Object.assign(new Error('the connection was lost before the commit'), { code: '08006' });
    this.commitSent = true;
    this.#isOver = true;
    const committed = this.#client.query('commit');
    committed.catch(() => undefined);
    for (const sent of this.#sent) await sent;
    // A transaction that failed answers COMMIT with ROLLBACK.
    if ((await committed).command !== 'COMMIT') throw unavailable('25P02', 'rolled_back');
  }

  /** Answers the error to throw: the one that made the others fail. */
  async rollBack(error: unknown): Promise<unknown> {
    this.#isOver = true;
    const [settled] = await Promise.all([
      Promise.allSettled(this.#sent),
      this.#client.query('rollback').catch(() => (this.isBroken = true)),
    ]);
    const first = settled.find((outcome) => outcome.status === 'rejected');
    return driverCode(error) === '25P02' && first ? first.reason : error;
  }

  #assertOpen(): void {
    assert(!this.#isOver, 'this transaction is over');
  }

  override async executeQuery<Row>({ sql: text, parameters }: CompiledQuery): Promise<QueryResult<Row>> {
    this.#assertOpen();
    const { rows, rowCount } = await this.#client.query<Row & object>(text, [...parameters]);
    return { rows, ...(rowCount !== null && { numAffectedRows: BigInt(rowCount) }) };
  }
}
