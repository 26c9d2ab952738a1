/** What Kysely needs to run on a connection that we opened: one driver for one connection, without transactions of its own. */
import assert from 'node:assert/strict';
import { Kysely } from 'kysely';
import type { CompiledQuery, DatabaseConnection, Dialect, Driver, QueryResult } from 'kysely';
import type { Schema } from './schema.ts';

/** The parts of a Kysely dialect that only depend on the database's kind. */
export type DialectParts = Pick<Dialect, 'createAdapter' | 'createIntrospector' | 'createQueryCompiler'>;

/** `acquire` is called for each statement, `release` after it. */
interface ConnectionSource {
  acquire: () => Promise<DatabaseConnection>;
  release: (connection: DatabaseConnection) => void;
}

export function kyselyOver(parts: DialectParts, source: ConnectionSource): Kysely<Schema> {
  return new Kysely<Schema>({ dialect: { ...parts, createDriver: () => driverOver(source) } });
}

/** A Kysely bound to one connection, as handed out inside a transaction. */
export function kyselyOn(parts: DialectParts, connection: DatabaseConnection): Kysely<Schema> {
  return kyselyOver(parts, { acquire: () => Promise.resolve(connection), release: () => undefined });
}

/** Compiles and never runs anything. */
export function compilerOf(parts: DialectParts): Kysely<Schema> {
  return kyselyOver(parts, {
    acquire: () => assert.fail('a compiler has no connection'),
    release: () => undefined,
  });
}

function driverOver({ acquire, release }: ConnectionSource): Driver {
  const refuse = () => assert.fail('the ledger’s transactions are begun by Ledger.transaction alone (S2.8)');
  return {
    init: () => Promise.resolve(),
    acquireConnection: acquire,
    releaseConnection: (connection) => Promise.resolve(release(connection)),
    beginTransaction: () => Promise.resolve().then(refuse),
    commitTransaction: () => Promise.resolve().then(refuse),
    rollbackTransaction: () => Promise.resolve().then(refuse),
    destroy: () => Promise.resolve(),
  };
}

export abstract class Connection implements DatabaseConnection {
  abstract executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>>;
  streamQuery<Row>(): AsyncIterableIterator<QueryResult<Row>> {
    return assert.fail('the ledger’s connections do not stream');
  }
}
