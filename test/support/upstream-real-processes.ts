/** The servers of examples/upstream that listen on HTTP, as processes that a test kills and starts again at the same place. */
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { pythonWith } from './python-clients.ts';

const READY_MS = 60_000;
const example = (path: string) => fileURLToPath(new URL(`../../examples/upstream/${path}`, import.meta.url));

export class HttpServerProcess {
  readonly url: string;
  readonly #command: readonly string[];
  readonly #env: Record<string, string>;
  #child: ChildProcess | null = null;

  private constructor(command: readonly string[], env: Record<string, string>, port: number) {
    this.#command = [...command, String(port)];
    this.#env = env;
    this.url = `http://127.0.0.1:${port}/mcp`;
  }

  /** FastMCP with background tasks. Installs it where it is not yet. */
  static async press(folder: string): Promise<HttpServerProcess> {
    const python = await pythonWith(example('fastmcp/requirements.txt'));
    const env = { PRESS_FOLDER: folder, FASTMCP_LOG_LEVEL: 'ERROR' };
    return new HttpServerProcess([python, example('fastmcp/server.py')], env, await freePort());
  }

  /** The Tasks extension, with tasks on disk. */
  static async kiln(folder: string): Promise<HttpServerProcess> {
    const node = [process.execPath, '--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
    const command = [...node, example('tasks-extension/server.ts')];
    return new HttpServerProcess(command, { KILN_FOLDER: folder }, await freePort());
  }

  /** Resolves once somebody answers there. */
  async start(): Promise<void> {
    const [command = '', ...args] = this.#command;
    const { PATH, HOME } = process.env;
    this.#child = spawn(command, args, { env: { PATH, HOME, ...this.#env }, stdio: 'ignore' });
    const deadline = Date.now() + READY_MS;
    while (!(await this.#answers())) {
      if (Date.now() > deadline) throw new Error(`${command} does not listen on ${this.url}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }

  async kill(): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, 'exit');
    child.kill('SIGKILL');
    await gone;
  }

  async #answers(): Promise<boolean> {
    try {
      await (await fetch(this.url, { method: 'POST', body: '{}' })).text();
      return true;
    } catch {
      return false;
    }
  }
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}
