/** Prepares the two stores: the ledger's schema and the namespace's search attributes. Safe to repeat and to race. */
import type { Connection } from '@temporalio/client';
import { HoldfastError } from '../src/contract/error.ts';
import type { Ledger } from '../src/ledger/ledger.ts';
import { SEARCH_ATTRIBUTES } from '../workflows/messages.ts';

/** temporal.api.enums.v1.IndexedValueType */
const KEYWORD = 2;
const DATETIME = 6;
const ALREADY_EXISTS = 6;

export const SEARCH_ATTRIBUTE_TYPES: Readonly<Record<string, number>> = {
  [SEARCH_ATTRIBUTES.status]: KEYWORD,
  [SEARCH_ATTRIBUTES.tenant]: KEYWORD,
  [SEARCH_ATTRIBUTES.action]: KEYWORD,
  [SEARCH_ATTRIBUTES.waitingSince]: DATETIME,
};

/** What the search attributes need of a connection; a client's and a worker's both fit. */
export interface AttributeConnection {
  operatorService: Pick<Connection['operatorService'], 'listSearchAttributes' | 'addSearchAttributes'>;
}

export interface Migrated {
  ledger: { from: number; to: number };
  /** Names that were missing. */
  searchAttributes: string[];
}

export async function migrate(
  ledger: Ledger,
  connection: AttributeConnection,
  namespace: string,
): Promise<Migrated> {
  return {
    ledger: await ledger.migrate(),
    searchAttributes: await registerSearchAttributes(connection, namespace),
  };
}

/**
 * Throws `engine_unprepared` naming what is missing: a task that sets an attribute nobody registered stands still until
 * somebody does. Says nothing where the namespace does not tell (a hosted one without operator access).
 */
export async function checkSearchAttributes(
  connection: AttributeConnection,
  namespace: string,
): Promise<void> {
  const missing = await missingSearchAttributes(connection, namespace).catch(() => []);
  if (missing.length === 0) return;
  throw new HoldfastError(
    'engine_unprepared',
    `Namespace ${namespace} lacks the search attributes ${missing.join(', ')}.`,
    { details: { namespace, missing } },
  );
}

async function registerSearchAttributes(
  connection: AttributeConnection,
  namespace: string,
): Promise<string[]> {
  const missing = await missingSearchAttributes(connection, namespace);
  for (const name of missing) await addSearchAttribute(connection, namespace, name);
  return missing;
}

async function missingSearchAttributes(
  connection: AttributeConnection,
  namespace: string,
): Promise<string[]> {
  const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
  return Object.keys(SEARCH_ATTRIBUTE_TYPES).filter((name) => !(name in (customAttributes ?? {})));
}

/** One of Holdfast's; it may be there already. */
export async function addSearchAttribute(
  connection: AttributeConnection,
  namespace: string,
  name: string,
): Promise<void> {
  const searchAttributes = { [name]: SEARCH_ATTRIBUTE_TYPES[name] ?? KEYWORD };
  try {
    await connection.operatorService.addSearchAttributes({ namespace, searchAttributes });
  } catch (error) {
    if (!isAlreadyThere(error)) throw error;
  }
}

function isAlreadyThere(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === ALREADY_EXISTS;
}
