/**
 * Driver errors become `ledger_unavailable` before they reach a caller: no SQL text, no value, no driver message, as
 * each of these may hold what was stored (S2.10). What is told is the driver's code and whether anything was committed.
 */
import { AssertionError } from 'node:assert';
import { HoldfastError } from '../contract/error.ts';

/** `rolled_back`: nothing of the transaction is in the database. `unknown`: the connection was lost during the commit. */
export type TransactionOutcome = 'rolled_back' | 'unknown';

const CODE = /^[A-Za-z0-9_]{1,64}$/;

/** SQLSTATE, `SQLITE_…` or a Node error code; never a message. */
export function driverCode(error: unknown): string {
  const code = typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
  return typeof code === 'string' && CODE.test(code) ? code : 'unknown';
}

/** Ours and programmer errors pass as they are; whatever a driver threw is wrapped. */
export function wrapStoreError(error: unknown, outcome: TransactionOutcome = 'rolled_back'): unknown {
  if (error instanceof HoldfastError || error instanceof AssertionError) return error;
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError)
    return error;
  return unavailable(driverCode(error), outcome);
}

export function unavailable(code: string, outcome: TransactionOutcome): HoldfastError {
  const what =
    outcome === 'unknown'
      ? 'The connection to the ledger was lost during a commit; whether it took place is not known'
      : 'The ledger could not be read or written, and nothing was changed';
  return new HoldfastError('ledger_unavailable', `${what} (${code}).`, {
    details: { driverCode: code, outcome },
  });
}

export function isDriverError(error: unknown): boolean {
  if (typeof error !== 'object' || error === null) return false;
  if (error instanceof HoldfastError || error instanceof AssertionError) return false;
  const name = error.constructor.name;
  return name === 'SqliteError' || name === 'DatabaseError' || isConnectionError(error);
}

const CONNECTION_MESSAGE =
  /^(Connection terminated|Client has encountered a connection error|Client was closed|timeout exceeded when trying to connect|timeout expired|Query read timeout|Cannot use a pool)/;

/** The connection is gone or never was; says nothing about a commit that was under way. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const code = driverCode(error);
  return (
    /^(ECONN|EPIPE|ETIMEDOUT|ENOTFOUND|EAI_|EHOST|ENET|ENOENT|EACCES)/.test(code) ||
    // Connection exceptions; admin, crash and cannot-connect-now shutdowns; idle-in-transaction timeout.
    /^(08|57P0|25P03)/.test(code) ||
    CONNECTION_MESSAGE.test(error.message)
  );
}
