/**
 * A PostgreSQL for tests: the one of HOLDFAST_TEST_DATABASE_URL, or one server of our own per test run, begun by the
 * first test that asks (postgres-server.ts) and stopped when the run is over, however it ends. Each caller gets a
 * database of its own.
 */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import pg from 'pg';

const START_BOUND_MS = 60_000;

export interface TestDatabase {
  /** `postgres://…`, a database that nobody else uses. */
  url: string;
  /** For tampering and for looking behind the ledger's back. */
  query: (sql: string, values?: unknown[]) => Promise<Record<string, unknown>[]>;
  drop: () => Promise<void>;
}

export async function createTestDatabase(): Promise<TestDatabase> {
  const serverUrl = process.env['HOLDFAST_TEST_DATABASE_URL'] ?? (await sharedServerUrl());
  const name = `holdfast_test_${randomBytes(8).toString('hex')}`;
  await once(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    query: (sql, values) => once(url.href, sql, values),
    drop: async () => void (await once(serverUrl, `drop database if exists ${name} with (force)`)),
  };
}

async function once(url: string, sql: string, values?: unknown[]): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(sql, values)).rows;
  } finally {
    await client.end();
  }
}

/** Whoever makes the folder starts the server; everybody reads its address from there. */
async function sharedServerUrl(): Promise<string> {
  const owner = process.env['VITEST'] === undefined ? process.pid : process.ppid;
  const folder = join(tmpdir(), `holdfast-test-postgres-${userInfo().uid}-${owner}`);
  try {
    mkdirSync(folder, { mode: 0o755 });
    startServer(folder, owner);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
  for (const deadline = Date.now() + START_BOUND_MS; Date.now() < deadline; await delay(50)) {
    if (existsSync(join(folder, 'url'))) return readFileSync(join(folder, 'url'), 'utf8');
    if (existsSync(join(folder, 'failure'))) throw new Error(readFileSync(join(folder, 'failure'), 'utf8'));
  }
  throw new Error(
    `no PostgreSQL within ${START_BOUND_MS} ms; set HOLDFAST_TEST_DATABASE_URL to use another one`,
  );
}

function startServer(folder: string, owner: number): void {
  const script = fileURLToPath(new URL('postgres-server.ts', import.meta.url));
  const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
  spawn(process.execPath, [...flags, script, folder, String(owner)], {
    detached: true,
    stdio: 'ignore',
  }).unref();
}
