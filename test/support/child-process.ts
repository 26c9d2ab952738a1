/**
 * Processes that a test starts, listens to, freezes and kills. All waiting is for events; bounds only say why a test
 * failed. Whatever is left when the test's process ends or `endAllChildren` is called is killed.
 */
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Notice, Order, Ran, Reached } from './child-messages.ts';

const PATIENCE_MS = 60_000;
const FREEZE_POLL_MS = 5;

const running = new Set<TestChild>();
process.on('exit', () => running.forEach((child) => child.signal('SIGKILL')));

export async function endAllChildren(): Promise<void> {
  await Promise.all([...running].map((child) => child.kill()));
}

type OrderBody = Order extends infer Each ? (Each extends Order ? Omit<Each, 'id'> : never) : never;

export class TestChild {
  readonly pid: number;
  /** What `ready` said. */
  data: Record<string, string> = {};
  /** Standard output and error so far. */
  output = '';
  /** In the order they were announced. */
  readonly places: Reached[] = [];
  private readonly attempts: Ran[] = [];
  private readonly child: ChildProcess;
  private readonly exit: Promise<unknown>;
  private readonly answers = new Map<number, Extract<Notice, { notice: 'did' }>>();
  private isReady = false;
  hasEnded = false;
  private wake: (() => void)[] = [];
  private orders = 0;

  constructor(script: string, options: object, env: NodeJS.ProcessEnv) {
    this.child = fork(fileURLToPath(new URL(script, import.meta.url)), [], {
      execArgv: ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'],
      env: {
        ...process.env,
        ...env,
        // A child strips and compiles some hundred files; the next one finds it done.
        NODE_COMPILE_CACHE: join(tmpdir(), 'holdfast-test-compile-cache'),
        HOLDFAST_TEST_OPTIONS: JSON.stringify(options),
      },
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    this.pid = this.child.pid ?? 0;
    running.add(this);
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => (this.output += text));
    }
    this.child.on('message', (notice: Notice) => this.hear(notice));
    this.exit = once(this.child, 'exit').then(() => {
      this.hasEnded = true;
      running.delete(this);
      this.notify();
    });
  }

  async ready(): Promise<this> {
    await this.until('ready', () => this.isReady);
    return this;
  }

  /** Resolves with the places once so many tasks stand somewhere, the first of each. */
  async reached(count: number, { patienceMs = PATIENCE_MS } = {}): Promise<Reached[]> {
    const firsts = () =>
      this.places.filter(
        ({ taskId }, index) => this.places.findIndex((place) => place.taskId === taskId) === index,
      );
    await this.until(`${count} tasks stood there`, () => firsts().length >= count, patienceMs);
    return firsts();
  }

  /** Resolves with what became of them once so many attempts have ended in this process. */
  async ran(count: number, fits: (ran: Ran) => boolean = () => true): Promise<Ran[]> {
    const ended = () => this.attempts.filter((ran) => ran.outcome !== null && fits(ran));
    await this.until(`${count} attempts`, () => ended().length >= count);
    return ended();
  }

  /** Resolves when the child has done it, with what it answered; rejects with what it threw (`code` kept). */
  async order(body: OrderBody): Promise<unknown> {
    const id = (this.orders += 1);
    this.child.send({ ...body, id });
    await this.until(`order ${JSON.stringify(body)}`, () => this.answers.has(id));
    const { error, data } = this.answers.get(id) ?? {};
    if (error) throw Object.assign(new Error(error.message), { code: error.code });
    return data;
  }

  signal(signal: NodeJS.Signals): void {
    if (!this.hasEnded) this.child.kill(signal);
  }

  /** SIGKILL; resolves when the process is gone. */
  async kill(): Promise<void> {
    this.signal('SIGKILL');
    await this.exit;
  }

  /** SIGSTOP; resolves when the kernel says that it stands still. */
  async freeze(): Promise<void> {
    this.signal('SIGSTOP');
    const isStopped = () => /^\d+ \(.*\) T/.test(readFileSync(`/proc/${this.pid}/stat`, 'utf8'));
    for (let polls = 0; !isStopped(); polls += 1) {
      if (polls * FREEZE_POLL_MS > PATIENCE_MS) throw new Error(`process ${this.pid} does not freeze`);
      await new Promise((resolve) => setTimeout(resolve, FREEZE_POLL_MS));
    }
  }

  thaw(): void {
    this.signal('SIGCONT');
  }

  async ended(): Promise<number | null> {
    await this.until('its end', () => this.hasEnded);
    return this.child.exitCode;
  }

  private hear(notice: Notice): void {
    if (notice.notice === 'ready') {
      this.isReady = true;
      this.data = notice.data;
    } else if (notice.notice === 'reached') this.places.push(notice.place);
    else if (notice.notice === 'ran') this.attempts.push(notice.ran);
    else this.answers.set(notice.order, notice);
    this.notify();
  }

  private notify(): void {
    for (const wake of this.wake.splice(0)) wake();
  }

  private async until(what: string, isSo: () => boolean, patienceMs = PATIENCE_MS): Promise<void> {
    const giveUpAt = Date.now() + patienceMs;
    while (!isSo()) {
      const left = giveUpAt - Date.now();
      if (this.hasEnded || left <= 0) {
        const why = this.hasEnded ? 'ended' : 'was silent';
        throw new Error(`child ${this.pid} ${why} before ${what}; it said:\n${this.output.slice(-4_000)}`);
      }
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.wake.push(() => {
          clearTimeout(timer);
          resolve();
        });
      });
    }
  }
}
