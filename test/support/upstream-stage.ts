/** The connection in front of an `UpstreamServer`, over either transport, and what the server saw. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { openUpstream } from '../../src/upstream/connection/open-upstream.ts';
import type { UpstreamOptions } from '../../src/upstream/connection/open-upstream.ts';
import { startUpstreamHttp } from './upstream-http.ts';
import type { UpstreamHttp } from './upstream-http.ts';
import { effectsIn, linesOf, receivedIn } from './upstream-server.ts';
import type { Era, Received, UpstreamServerOptions } from './upstream-server.ts';
import type { UpstreamStage } from './upstream-suite.ts';

export const SECRET = 'canary-5f0c9d';

export interface ConnectionStage extends UpstreamStage {
  readonly received: Received[];
  /** Everything that was logged, as text. */
  readonly logged: string[];
  /** Over HTTP. */
  readonly http: UpstreamHttp | null;
  /** Of the last process, over stdio. */
  pid(): number;
  until(what: string, isSo: () => boolean): Promise<void>;
}

export type Transport = 'stdio' | 'http';

/**
 * Field case 33 gives a cancel 250 ms. What measures it here is no clock but calls that were made after it, one after the
 * other: whatever was asked for before them has come once they are answered, however slow the machine is.
 */
export async function threeCalls(call: () => Promise<unknown>): Promise<void> {
  for (let calls = 0; calls < 3; calls += 1) await call();
}

export async function connectionStage(
  transport: Transport,
  server: Partial<UpstreamServerOptions> & { era: Era; stays?: boolean },
  options: Partial<UpstreamOptions> = {},
): Promise<ConnectionStage> {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-upstream-'));
  const http = transport === 'http' ? await startUpstreamHttp({ dir, ...server }) : null;
  const logged: string[] = [];
  const log = (fields: object, message: string) => void logged.push(`${message} ${JSON.stringify(fields)}`);
  const pidFile = join(dir, 'pid');
  const upstream = openUpstream({
    identity: 'another',
    address: http
      ? { url: http.url, headers: { authorization: `Bearer ${SECRET}` } }
      : stdioServer({ dir, ...server }),
    info: { name: 'test', version: '1.0.0' },
    log: { info: log, warn: log },
    ...options,
  });
  const stage: ConnectionStage = {
    ...{ upstream, http, logged },
    get received() {
      return receivedIn(dir);
    },
    asksInTasks: server.era === 'modern',
    effects: (key) => effectsIn(dir, key),
    pid: () => Number(linesOf(pidFile).at(-1)),
    async restart() {
      if (http) return await http.restart();
      const pid = stage.pid();
      process.kill(pid, 'SIGKILL');
      await stage.until('the end of the process', () => !isAlive(pid));
    },
    async until(what, isSo) {
      const giveUpAt = Date.now() + 20_000;
      while (!isSo()) {
        if (Date.now() > giveUpAt) throw new Error(`${what} did not come: ${JSON.stringify(stage.received)}`);
        await delay(5);
      }
    },
    async close() {
      await upstream.close();
      await http?.close();
      rmSync(dir, { recursive: true, force: true });
    },
  };
  return stage;
}

export const stdioServer = (options: UpstreamServerOptions & { stays?: boolean }) => ({
  command: process.execPath,
  args: [
    '--experimental-strip-types',
    '--disable-warning=ExperimentalWarning',
    join(import.meta.dirname, 'upstream-stdio.ts'),
    JSON.stringify(options),
  ],
  env: { UPSTREAM_SECRET: SECRET },
});

export function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
