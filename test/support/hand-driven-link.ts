/**
 * A link whose server answers as the test says: `answer` is asked for each request in turn. Without the Tasks extension
 * unless `hasTasks`, so that every task is read with `task_get`, as a client of any server would.
 */
import type { TaskEnabledSession } from '@modelcontextprotocol/ext-tasks/client';
import { createConnector } from '../../src/mcp-client/connector.ts';
import type { WireNotification } from '../../src/mcp-client/dispatch.ts';
import { RequestFailed } from '../../src/mcp-client/link.ts';
import type { Link } from '../../src/mcp-client/link.ts';
import type { ClientParts } from '../../src/mcp-client/parts.ts';
import type { Reply } from '../../src/mcp-client/reply.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { HandDrivenClock } from './hand-driven-clock.ts';

export interface HandDrivenRequest {
  id: string;
  method: string;
  params: JsonObject;
  progress: (value: number) => void;
  notify: (notification: WireNotification) => void;
  /** Of one that was left silent. */
  end: (reply: Reply) => void;
  signal: AbortSignal;
}

export type Answer = Reply | 'silent';

export function handDrivenLink(
  answer: (request: HandDrivenRequest, nth: number) => Answer,
  { hasTasks = false } = {},
) {
  const clock = new HandDrivenClock();
  const requests: HandDrivenRequest[] = [];
  let opened = 0;
  const request: Link['request'] = (method, params, options, id = `request ${requests.length + 1}`) => {
    const { signal, onProgress, onNotification } = options;
    return new Promise((resolve) => {
      const made: HandDrivenRequest = {
        ...{ id, method, params, signal, end: resolve },
        progress: (progress) => onProgress?.({ progress }),
        notify: (notification) => onNotification?.(notification),
      };
      requests.push(made);
      const reply = answer(made, requests.length);
      if (reply !== 'silent') return resolve(reply);
      const cancelled = () => resolve({ kind: 'cancelled' });
      if (signal.aborted) return cancelled();
      signal.addEventListener('abort', cancelled, { once: true });
    });
  };
  const open = (): Promise<Link> => {
    opened += 1;
    return Promise.resolve({
      era: hasTasks ? 'modern' : 'legacy',
      between: hasTasks ? 'nothing' : 'session',
      tasks: hasTasks ? tasksOver(request) : null,
      isOpen: true,
      isIdle: true,
      heard: 0,
      nextId: () => `request ${requests.length + 1}`,
      close: () => Promise.resolve(),
      request,
    });
  };
  const connector = createConnector(open);
  const parts: ClientParts = { connector, clock, random: () => 0.5 };
  return { parts, clock, requests, opened: () => opened };
}

/** Lets all that is ready happen, and then time pass, until `work` has settled. */
export async function settle<T>(work: Promise<T>, clock: HandDrivenClock, stepMs = 50): Promise<T> {
  let isOver = false;
  const done = () => void (isOver = true);
  work.then(done, done);
  for (let turns = 0; !isOver; turns += 1) {
    if (turns > 100_000) throw new Error('it does not settle');
    await new Promise((resolve) => setImmediate(resolve));
    if (!isOver) clock.pass(stepMs);
  }
  return work;
}

/** As much of the extension's session as a reader needs. */
const tasksOver = (request: Link['request']): TaskEnabledSession =>
  ({
    task: (taskId: string) => ({
      async snapshot(signal: AbortSignal) {
        const reply = await request('tasks/get', { taskId }, { signal });
        if (reply.kind === 'result') return { raw: reply.result };
        throw reply.kind === 'error' ? new Error(reply.error.message) : new RequestFailed(reply);
      },
    }),
  }) as unknown as TaskEnabledSession;
