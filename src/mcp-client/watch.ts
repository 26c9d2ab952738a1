/**
 * Tasks watched over any number of connections (M2.5, M6.3).
 *
 * A notification is a hint: it makes a task due for a read, and what is told is what the read says. The same loop serves a
 * server that pushes (a hint makes a task due at once, and each is read now and then all the same) and one that refuses to
 * (a task is due again when the server said).
 *
 * Invariants:
 * 1. After each (re)connect the stream is asked for with the tasks that are still open, and each is read once it stands.
 * 2. No state of a task is told twice and none after its end, whichever way it came.
 * 3. A lost stream costs latency, never truth: until it stands again the tasks are polled.
 */
import { SUBSCRIPTION_ID_META_KEY } from '@modelcontextprotocol/client';
import { pause } from '../contract/clock.ts';
import { REFETCH_META } from '../contract/wire-names.ts';
import type { Json, JsonObject } from '../task/json.ts';
import { BACKOFF, createBackoff } from './backoff.ts';
import type { Backoff } from './backoff.ts';
import { isNews, NOTHING_SEEN, remember, withSubscription } from './deduplication.ts';
import type { Seen, TaskNews } from './deduplication.ts';
import type { WireNotification } from './dispatch.ts';
import { MCP_CLIENT_LIMITS } from './limits.ts';
import { readingOfTask } from './outcome.ts';
import type { TaskReading } from './outcome.ts';
import { unlessAborted } from './parts.ts';
import type { ClientParts } from './parts.ts';
import { planAfterLoss } from './reconnect-plan.ts';
import { failureOfError } from './reply.ts';
import type { Reply } from './reply.ts';
import { readTask, TaskRequestRefused } from './tasks.ts';

export interface WatchOptions {
  /** Ends the watch; no task is touched. */
  signal: AbortSignal;
  /** Of one read. */
  readIdleMs: number;
}

interface Watch {
  parts: ClientParts;
  options: WatchOptions;
  /** When each open task is read next. */
  due: Map<string, number>;
  seen: Seen;
  /** The tasks that the live stream promised to tell about. */
  honoured: Set<string>;
  stream: AbortController | null;
  /** Null: the server has no such stream. */
  listenAt: number | null;
  backoff: Backoff;
  wake: () => void;
  /** When the live stream stood; null: not yet. */
  acknowledgedAt: number | null;
}

/** Each new state of each task, until all have ended or `signal` aborts. Throws `TaskRequestRefused` for an unknown id. */
export async function* watchTasks(
  parts: ClientParts,
  taskIds: readonly string[],
  options: WatchOptions,
): AsyncGenerator<TaskReading, void, undefined> {
  const now = parts.clock.now();
  const watch: Watch = {
    ...{ parts, options, seen: NOTHING_SEEN, honoured: new Set(), stream: null },
    ...{ due: new Map(taskIds.map((id) => [id, now])), listenAt: now },
    ...{ backoff: createBackoff(parts.random), wake: () => undefined, acknowledgedAt: null },
  };
  try {
    while (watch.due.size > 0 && !options.signal.aborted) {
      await restoreStream(watch);
      const taskId = mostDue(watch);
      if (taskId === null) await nextTurn(watch);
      else {
        const reading = await readDue(watch, taskId);
        if (reading !== null) yield reading;
      }
    }
  } finally {
    watch.stream?.abort('the watch is over');
  }
}

function mostDue({ due, parts }: Watch): string | null {
  const now = parts.clock.now();
  for (const [taskId, at] of due) if (at <= now) return taskId;
  return null;
}

/** The reading, if it is news. */
async function readDue(watch: Watch, taskId: string): Promise<TaskReading | null> {
  const { parts, options, due } = watch;
  // Due again before the read: a hint that comes while it is under way must not be lost.
  due.set(taskId, Number.POSITIVE_INFINITY);
  const maximumAt = Number.POSITIVE_INFINITY;
  const read = await readTask(parts, taskId, {
    idleMs: options.readIdleMs,
    maximumAt,
    signal: options.signal,
  });
  if (read.kind === 'over') return null;
  if (read.kind === 'refused') throw new TaskRequestRefused(read.error);
  const { reading } = read;
  if (reading.hasEnded) due.delete(taskId);
  else {
    const againMs = watch.honoured.has(taskId)
      ? MCP_CLIENT_LIMITS.safetyReadMs.value
      : reading.pollIntervalMs;
    due.set(taskId, Math.min(due.get(taskId) ?? 0, parts.clock.now() + againMs));
  }
  const news = newsOf(reading, null);
  if (!isNews(watch.seen, news)) return null;
  watch.seen = remember(watch.seen, news);
  return reading;
}

const newsOf = (reading: TaskReading, subscriptionId: string | null): TaskNews => ({
  subscriptionId,
  taskId: reading.taskId,
  sequence: reading.sequence,
  fingerprint: `${reading.status} ${reading.statusMessage}`,
  hasEnded: reading.hasEnded,
});

/** Until something is due, a hint comes, or the stream ends. */
async function nextTurn(watch: Watch): Promise<void> {
  const { parts, due, options } = watch;
  const streamAt =
    watch.stream === null && watch.listenAt !== null ? watch.listenAt : Number.POSITIVE_INFINITY;
  const at = Math.min(...due.values(), streamAt);
  const turn = new AbortController();
  const end = () => turn.abort();
  watch.wake = end;
  options.signal.addEventListener('abort', end, { once: true });
  await pause(parts.clock, Math.max(0, at - parts.clock.now()), turn.signal);
  options.signal.removeEventListener('abort', end);
}

/** Opens the stream that is due, with the filter restored. */
async function restoreStream(watch: Watch): Promise<void> {
  const { parts, due, options } = watch;
  if (watch.stream !== null || watch.listenAt === null || parts.clock.now() < watch.listenAt) return;
  const found = await unlessAborted(parts.connector.link(), options.signal);
  if (found === null) return;
  if (found.kind === 'failure') return listenLater(watch);
  const { link } = found;
  if (link.tasks === null) {
    watch.listenAt = null;
    return;
  }
  const [step] = planAfterLoss({ kind: 'watch', taskIds: [...due.keys()] });
  const taskIds = step?.do === 'listen' ? [...step.taskIds] : [];
  const id = link.nextId();
  const stream = new AbortController();
  watch.stream = stream;
  watch.acknowledgedAt = null;
  watch.seen = withSubscription(watch.seen, id);
  void link
    .request(
      'subscriptions/listen',
      { notifications: { taskIds } },
      { signal: stream.signal, onNotification: (notification) => hear(watch, notification) },
      id,
    )
    .then((reply) => {
      if (reply.kind === 'failure') parts.connector.suspect(link, false);
      if (watch.stream === stream) streamEnded(watch, reply);
    });
}

function hear(watch: Watch, { method, params }: WireNotification): void {
  const now = watch.parts.clock.now();
  if (method === 'notifications/subscriptions/acknowledged') {
    const honoured = (params.notifications as JsonObject | undefined)?.taskIds as Json[] | undefined;
    watch.honoured = new Set((honoured ?? []).map(String));
    watch.acknowledgedAt = now;
    // What happened while no stream stood was told to nobody.
    for (const taskId of watch.due.keys()) if (watch.honoured.has(taskId)) watch.due.set(taskId, now);
  } else if (method === 'notifications/tasks' && watch.due.has(String(params.taskId))) {
    const meta = params._meta as JsonObject;
    // M6.1: something was dropped before it, about whichever task.
    if (meta[REFETCH_META] !== undefined) for (const taskId of watch.due.keys()) watch.due.set(taskId, now);
    const subscriptionId = String(meta[SUBSCRIPTION_ID_META_KEY]);
    const news = newsOf(readingOfTask(params), subscriptionId);
    if (isNews(watch.seen, news)) watch.due.set(news.taskId, now);
  }
  watch.wake();
}

function streamEnded(watch: Watch, reply: Reply): void {
  // Its own word that it has no such stream for these; anything else is a loss.
  const isRefused =
    (reply.kind === 'error' && failureOfError(reply.error) === 'refused') ||
    (reply.kind === 'failure' && reply.failure === 'refused') ||
    (reply.kind === 'result' && watch.honoured.size === 0);
  watch.stream = null;
  watch.honoured = new Set();
  watch.seen = withSubscription(watch.seen, null);
  const now = watch.parts.clock.now();
  // One that fell at once is a failure in a row with the next.
  if (watch.acknowledgedAt !== null && now - watch.acknowledgedAt > BACKOFF.capMs) watch.backoff.reset();
  for (const [taskId, at] of watch.due) watch.due.set(taskId, Math.min(at, now));
  if (isRefused) watch.listenAt = null;
  else listenLater(watch, reply.kind === 'failure' ? reply.retryAfterMs : undefined);
  watch.wake();
}

function listenLater(watch: Watch, retryAfterMs?: number): void {
  watch.listenAt = watch.parts.clock.now() + watch.backoff.next(retryAfterMs);
}
