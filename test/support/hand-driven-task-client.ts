/**
 * A `TaskClient` whose tasks move only when the test says so. It keeps the promises that the gateway relies on: one task
 * per key, conflicts by path, attaching, `task_not_found` for foreign ids, waits that end with the task or the signal.
 */
import type {
  DecisionAnswer,
  DecisionInput,
  FindRequest,
  InboxEntry,
  MessageAnswer,
  StartRequest,
  TaskAnswer,
  TaskClient,
  TaskDetail,
} from '../../src/client/task-client.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import type { Json } from '../../src/task/json.ts';
import type { TaskError } from '../../src/task/outcome.ts';
import type { Principal } from '../../src/task/plan.ts';
import { deferred } from './deferred.ts';

type Method = 'start' | 'get' | 'wait' | 'cancel' | 'decide';

interface HandDrivenTask {
  tenant: string;
  request: StartRequest;
  answer: TaskAnswer;
  listeners: Set<() => void>;
}

const ENDED: ReadonlySet<string> = new Set(['completed', 'failed', 'cancelled']);
const WAITS_FOR_PERSON: ReadonlySet<string> = new Set(['needs_attention', 'awaiting_approval']);

export class HandDrivenTaskClient implements TaskClient {
  readonly starts: StartRequest[] = [];
  readonly cancels: { taskId: string; reason: string | undefined }[] = [];
  readonly decisions: { taskId: string; principal: Principal; decision: DecisionInput }[] = [];
  /** What the task answers to a decision, and what becomes of it. */
  onDecision: (decision: DecisionInput, taskId: string) => DecisionAnswer = () => ({
    accepted: true,
    code: 'approved',
    status: 'running',
  });
  /** How often `cancelUnattended` was asked. */
  abandonments = 0;
  readonly marks: { taskId: string; how: 'waiting' | 'handed'; at: number }[] = [];
  /** Waits that have not ended; 0 proves that a leaving caller freed its wait. */
  openWaits = 0;
  /** Actions that end at once, with what they answer. */
  readonly immediate = new Map<string, (args: Json) => Partial<TaskAnswer>>();
  /** Hints are lost. */
  isDeaf = false;
  /** How often tasks were read. */
  reads = 0;
  readonly #hinted = new Map<string, Set<() => void>>();
  readonly #tasks = new Map<string, HandDrivenTask>();
  readonly #held = new Map<Method, Promise<void>>();
  readonly #failures = new Map<Method, unknown>();

  /** Holds every call of `method` until the answered function is called. */
  hold(method: Method): () => void {
    const gate = deferred();
    this.#held.set(method, gate.promise);
    return () => {
      this.#held.delete(method);
      gate.resolve();
    };
  }

  /** The next call of `method` rejects with `error`. */
  failNext(method: Method, error: unknown): void {
    this.#failures.set(method, error);
  }

  /** The open task started last, or else the last of all. */
  get lastTaskId(): string {
    const ids = [...this.#tasks.keys()];
    const id = ids.findLast((each) => !ENDED.has(this.#task(each).answer.status)) ?? ids.at(-1);
    if (id === undefined) throw new Error('no task was started');
    return id;
  }

  get openTasks(): number {
    return [...this.#tasks.values()].filter(({ answer }) => !ENDED.has(answer.status)).length;
  }

  answerOf(taskId: string): TaskAnswer {
    return this.#task(taskId).answer;
  }

  move(change: Partial<TaskAnswer>, taskId = this.lastTaskId): void {
    const task = this.#task(taskId);
    task.answer = { ...task.answer, ...change, updatedAt: task.answer.updatedAt + 1 };
    for (const listener of [...task.listeners]) listener();
    this.hint(taskId);
  }

  /** Says that the task changed, whether or not it did; `isDeaf` loses it. */
  hint(taskId: string): void {
    if (this.isDeaf) return;
    for (const listener of [...(this.#hinted.get(taskId) ?? [])]) listener();
  }

  complete(result: Json, taskId = this.lastTaskId): void {
    this.move(
      { status: 'completed', effect: 'applied', cause: 'committed', result, statusMessage: 'completed' },
      taskId,
    );
  }

  fail(error: TaskError, change: Partial<TaskAnswer> = {}, taskId = this.lastTaskId): void {
    this.move(
      {
        status: 'failed',
        effect: 'none',
        cause: 'permanent_failure',
        error,
        statusMessage: 'failed',
        ...change,
      },
      taskId,
    );
  }

  async start(request: StartRequest): Promise<TaskAnswer> {
    await this.#gate('start');
    this.starts.push(request);
    const met = this.#meet(request);
    if (met) return met;
    const taskId = `task_${this.#tasks.size + 1}`;
    const now = this.immediate.get(request.action)?.(request.args);
    const answer = { ...opened(taskId, request), ...now };
    this.#tasks.set(taskId, { tenant: request.principal.tenant, request, answer, listeners: new Set() });
    return answer;
  }

  async get(taskId: string, principal: Principal): Promise<TaskAnswer> {
    this.reads += 1;
    await this.#gate('get');
    return this.#visible(taskId, principal).answer;
  }

  async find({ action, key, principal }: FindRequest): Promise<TaskAnswer> {
    await this.#gate('get');
    const found = [...this.#tasks.values()].findLast(
      ({ tenant, request }) =>
        tenant === principal.tenant && request.action === action && request.key === key,
    );
    if (found === undefined) throw new HoldfastError('task_not_found', 'Nothing is reserved under this key.');
    return found.answer;
  }

  async wait(
    taskId: string,
    principal: Principal,
    options: { timeoutMs: number; signal?: AbortSignal; onChange?: (answer: TaskAnswer) => void },
  ): Promise<TaskAnswer> {
    await this.#gate('wait');
    const task = this.#visible(taskId, principal);
    const isOver = () => ENDED.has(task.answer.status) || WAITS_FOR_PERSON.has(task.answer.status);
    if (isOver()) return task.answer;
    this.openWaits += 1;
    const { promise, resolve } = deferred();
    const timer = setTimeout(resolve, options.timeoutMs);
    const listener = () => {
      options.onChange?.(task.answer);
      if (isOver()) resolve();
    };
    task.listeners.add(listener);
    options.signal?.addEventListener('abort', () => resolve(), { once: true });
    if (options.signal?.aborted) resolve();
    await promise;
    clearTimeout(timer);
    task.listeners.delete(listener);
    this.openWaits -= 1;
    options.signal?.throwIfAborted();
    return task.answer;
  }

  async cancel(taskId: string, principal: Principal, reason?: string): Promise<MessageAnswer> {
    await this.#gate('cancel');
    const { answer } = this.#visible(taskId, principal);
    this.cancels.push({ taskId, reason });
    if (ENDED.has(answer.status)) return { accepted: false, code: 'already_ended', status: answer.status };
    this.move({ cancelRequested: true }, taskId);
    return { accepted: true, code: 'requested', status: answer.status };
  }

  /** Marks of those who wait, by a clock of its own that each mark moves; `handed` is for good. */
  attend(taskId: string, principal: Principal, how: 'waiting' | 'handed'): Promise<number> {
    this.#visible(taskId, principal);
    const now = (this.marks.at(-1)?.at ?? 0) + 1;
    this.marks.push({ taskId, how, at: now });
    return Promise.resolve(now);
  }

  async cancelUnattended(taskId: string, principal: Principal, since: number): Promise<MessageAnswer | null> {
    this.abandonments += 1;
    const isAttended = this.marks.some(
      (mark) => mark.taskId === taskId && (mark.at > since || mark.how === 'handed'),
    );
    return isAttended ? null : this.cancel(taskId, principal, 'abandoned');
  }

  async decide(taskId: string, principal: Principal, decision: DecisionInput): Promise<DecisionAnswer> {
    await this.#gate('decide');
    const { answer } = this.#visible(taskId, principal);
    this.decisions.push({ taskId, principal, decision });
    if (ENDED.has(answer.status)) return { accepted: false, code: 'already_ended', status: answer.status };
    return this.onDecision(decision, taskId);
  }

  onHint(taskId: string, listener: () => void): () => void {
    const group = this.#hinted.get(taskId) ?? new Set();
    this.#hinted.set(taskId, group.add(listener));
    return () => void group.delete(listener);
  }

  /** Who wants to hear of any task; 0 proves that a listen which is over left nothing behind. */
  get subscribers(): number {
    return [...this.#hinted.values()].reduce((sum, group) => sum + group.size, 0);
  }

  detail(): Promise<TaskDetail> {
    return unused('detail');
  }
  answer(): Promise<MessageAnswer> {
    return unused('answer');
  }
  resolve(): Promise<MessageAnswer> {
    return unused('resolve');
  }
  interrupt(): Promise<MessageAnswer> {
    return unused('interrupt');
  }
  resume(): Promise<MessageAnswer> {
    return unused('resume');
  }
  inbox(): Promise<InboxEntry[]> {
    return unused('inbox');
  }
  list(): Promise<TaskAnswer[]> {
    return unused('list');
  }
  audit(): Promise<never> {
    return unused('audit');
  }

  /** The task that an equal key or an equal open keyless call leads to. */
  #meet({ action, args, key, principal, attach = true }: StartRequest): TaskAnswer | null {
    for (const { tenant, request, answer } of this.#tasks.values()) {
      if (tenant !== principal.tenant || request.action !== action) continue;
      if (answer.status === 'cancelled' && answer.effect === 'none') continue; // S1.6: called again, it is a new task
      const isEqual = JSON.stringify(request.args) === JSON.stringify(args);
      if (key !== undefined && request.key === key) {
        if (!isEqual)
          throw new HoldfastError('idempotency_conflict', 'The key was used with other arguments.', {
            details: { paths: ['/amount'] },
          });
        return { ...answer, replayed: ENDED.has(answer.status) };
      }
      const isOpen = !ENDED.has(answer.status);
      if (key === undefined && request.key === undefined && attach && isEqual && isOpen)
        return { ...answer, attached: true };
    }
    return null;
  }

  #visible(taskId: string, principal: Principal): HandDrivenTask {
    const task = this.#tasks.get(taskId);
    if (task?.tenant === principal.tenant) return task;
    throw new HoldfastError('task_not_found', 'No such task.');
  }

  #task(taskId: string): HandDrivenTask {
    const task = this.#tasks.get(taskId);
    if (!task) throw new Error(`no task ${taskId}`);
    return task;
  }

  async #gate(method: Method): Promise<void> {
    await this.#held.get(method);
    const failure = this.#failures.get(method);
    this.#failures.delete(method);
    if (failure !== undefined) throw failure instanceof Error ? failure : new Error(String(failure));
  }
}

const unused = (method: string): Promise<never> =>
  Promise.reject(new Error(`the gateway has no use for ${method}`));

const opened = (taskId: string, { action, key }: StartRequest): TaskAnswer => ({
  taskId,
  operationId: `op_${taskId}`,
  action,
  status: 'running',
  effect: null,
  cause: null,
  replayed: false,
  attached: false,
  autoRetry: key !== undefined,
  cancelRequested: false,
  result: null,
  error: null,
  stale: false,
  statusMessage: 'running attempt 1',
  createdAt: 1_800_000_000_000,
  updatedAt: 1_800_000_000_000,
});
