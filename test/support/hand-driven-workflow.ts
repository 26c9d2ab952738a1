/**
 * Stands for `@temporalio/workflow` where workflow code runs in the test's own process: `vi.mock` puts it in its place.
 * Activities wait until the test answers them, timers until it moves the clock; conditions are looked at as the engine
 * does, all of them whenever the code has come to rest after a job.
 */
import { setImmediate } from 'node:timers/promises';
import { vi } from 'vitest';

export interface Asked {
  activity: string;
  request: { [field: string]: unknown };
  answer(value: unknown): void;
}

interface Condition {
  isSo: () => boolean;
  until: number | null;
  wake: (isSo: boolean) => void;
}

type Handler = (...args: unknown[]) => unknown;

export class HandDrivenWorkflow {
  readonly asked: Asked[] = [];
  /** Told of each activity as the code asks for it. */
  onAsked: (asked: Asked) => void = () => undefined;
  readonly #handlers = new Map<string, Handler>();
  #conditions: Condition[] = [];

  send(name: string, message: unknown): unknown {
    const handler = this.#handlers.get(name);
    if (handler === undefined) throw new Error(`nobody listens to ${name}`);
    return handler(message);
  }

  handle(name: string, handler: Handler): void {
    this.#handlers.set(name, handler);
  }

  ask(activity: string, request: Asked['request']): Promise<unknown> {
    return new Promise((resolve) => {
      const asked: Asked = {
        activity,
        request,
        answer: (value) => {
          this.asked.splice(this.asked.indexOf(asked), 1);
          resolve(value);
        },
      };
      this.asked.push(asked);
      this.onAsked(asked);
    });
  }

  condition(isSo: () => boolean, timeoutMs: number | null): Promise<boolean> {
    if (isSo()) return Promise.resolve(true);
    const until = timeoutMs === null ? null : Date.now() + timeoutMs;
    return new Promise((wake) => this.#conditions.push({ isSo, until, wake }));
  }

  /** Until nothing moves by itself. */
  async rest(): Promise<void> {
    for (;;) {
      await setImmediate();
      const due = this.#conditions.filter(({ isSo }) => isSo());
      if (due.length === 0) return;
      this.#conditions = this.#conditions.filter((each) => !due.includes(each));
      for (const { wake } of due) wake(true);
    }
  }

  /** Timers that are due by then fire, the earliest first. */
  async moveTo(time: number): Promise<void> {
    for (;;) {
      const timed = this.#conditions.filter(({ until }) => until !== null && until <= time);
      const [next] = timed.sort((a, b) => Number(a.until) - Number(b.until));
      if (next === undefined) break;
      vi.setSystemTime(Math.max(Date.now(), Number(next.until)));
      this.#conditions = this.#conditions.filter((each) => each !== next);
      next.wake(false);
      await this.rest();
    }
    vi.setSystemTime(time);
    await this.rest();
  }
}

let current: HandDrivenWorkflow | null = null;
export const drive = (next: HandDrivenWorkflow): HandDrivenWorkflow => (current = next);
function driven(): HandDrivenWorkflow {
  if (current === null) throw new Error('no workflow is driven');
  return current;
}

class Scope {
  readonly cancelRequested = new Promise<never>(() => undefined);
  static current = (): Scope => new Scope();
  static nonCancellable = <T>(work: () => T): T => work();
  run = <T>(work: () => T): T => work();
  cancel = (): void => undefined;
}

const activities = (): unknown =>
  new Proxy({}, { get: (_none, name) => (request: never) => driven().ask(String(name), request) });

/** What of the module is not as it is. */
export const handDriven = {
  CancellationScope: Scope,
  allHandlersFinished: () => true,
  condition: (isSo: () => boolean, timeoutMs?: number) => driven().condition(isSo, timeoutMs ?? null),
  patched: () => true,
  proxyActivities: activities,
  proxyLocalActivities: activities,
  proxySinks: () => ({ holdfastHints: { changed: () => undefined } }),
  setHandler: ({ name }: { name: string }, handler: Handler) => driven().handle(name, handler),
  sleep: async (ms: number) => void (await driven().condition(() => false, ms)),
  upsertSearchAttributes: () => undefined,
  workflowInfo: () => ({
    workflowId: 'task_test',
    startTime: new Date(0),
    historyLength: 0,
    historySize: 0,
    continueAsNewSuggested: false,
  }),
};
