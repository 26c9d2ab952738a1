/**
 * A `TaskEngine` driven by hand: what a Temporal server and its worker would say, said when the test says so. Follows
 * the seam's contract (src/client/engine.ts): one workflow per id, met while it runs, never reopened.
 */
import type {
  DeliveryAnswer,
  EngineRecord,
  PlannedStart,
  ResultAnswer,
  TaskEngine,
  WaitingTask,
} from '../../src/client/engine.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import type { DecisionMessage, DecisionReply } from '../../src/task/approval.ts';
import type { TaskEvent } from '../../src/task/event.ts';
import type { TaskOutcome } from '../../src/task/outcome.ts';
import { reduce } from '../../src/task/reduce.ts';
import type { TaskState } from '../../src/task/state.ts';

interface Run {
  start: PlannedStart;
  state: 'running' | 'completed' | 'killed';
  outcome: TaskOutcome | null;
  tenant: string;
  told: string[];
}

export class HandDrivenEngine implements TaskEngine {
  readonly runs = new Map<string, Run>();
  /** How many times each workflow was really started: the oracle of "once". */
  readonly starts = new Map<string, number>();
  isReachable = true;
  isWorkerAlive = true;
  /** What a task was started with can be read back. */
  areHistoriesReadable = true;
  /** What the task answers to decisions. */
  decisionReply: DecisionReply = { accepted: true, code: 'approved', status: 'running' };
  readonly decisions: DecisionMessage[] = [];
  /** The inbox. */
  /** Whose result somebody has waited for. */
  readonly awaited = new Set<string>();
  readonly waits: (WaitingTask & { tenant: string })[] = [];
  /** Awaited before each start; a gate for tests of what happens meanwhile. */
  beforeStart: (taskId: string) => Promise<void> = () => Promise.resolve();
  #closed: (() => void)[] = [];

  async start(taskId: string, start: PlannedStart): Promise<{ kind: 'running' } | { kind: 'closed' }> {
    await this.beforeStart(taskId);
    this.#reach();
    const run = this.runs.get(taskId);
    if (run) return { kind: run.state === 'running' ? 'running' : 'closed' };
    const tenant = start.plan.principal.tenant;
    this.runs.set(taskId, {
      start: structuredClone(start),
      state: 'running',
      outcome: null,
      tenant,
      told: [],
    });
    this.starts.set(taskId, (this.starts.get(taskId) ?? 0) + 1);
    return { kind: 'running' };
  }

  async record(taskId: string): Promise<EngineRecord> {
    this.#reach();
    const run = this.runs.get(taskId);
    if (!run) return { kind: 'absent' };
    const { state, tenant } = run;
    return { kind: 'present', state, tenant, action: run.start.plan.action, startedAt: 1, closedAt: null };
  }

  async sight(taskId: string) {
    const record = await this.record(taskId);
    const run = this.runs.get(taskId);
    return {
      record,
      state: run && this.isWorkerAlive && run.state !== 'killed' ? stateOf(taskId, run) : null,
    };
  }

  async events(): Promise<TaskEvent[] | null> {
    return this.isWorkerAlive ? [] : null;
  }

  async result(taskId: string, deadline: number, signal?: AbortSignal): Promise<ResultAnswer> {
    for (;;) {
      this.#reach();
      const run = this.runs.get(taskId);
      if (!run) return { kind: 'absent' };
      if (run.state === 'killed') return { kind: 'killed' };
      if (run.state === 'completed' && run.outcome) return { kind: 'ended', outcome: run.outcome };
      const left = deadline - Date.now();
      if (left <= 0 || signal?.aborted) return { kind: 'open' };
      this.awaited.add(taskId);
      await this.#untilClosed(left, signal);
    }
  }

  async cancel(taskId: string): Promise<DeliveryAnswer> {
    return this.#tell(taskId, 'cancel');
  }

  async resolve(taskId: string): Promise<DeliveryAnswer> {
    return this.#tell(taskId, 'resolve');
  }

  async interrupt(taskId: string): Promise<DeliveryAnswer> {
    return this.#tell(taskId, 'interrupt');
  }

  async resume(taskId: string): Promise<DeliveryAnswer> {
    return this.#tell(taskId, 'resume');
  }

  async answer(taskId: string): Promise<DeliveryAnswer> {
    return this.#tell(taskId, 'answer');
  }

  async decide(taskId: string, decision: DecisionMessage): Promise<DeliveryAnswer<DecisionReply>> {
    const delivery = this.#tell(taskId, decision.kind);
    if (delivery.kind === 'answered' || delivery.kind === 'stored') this.decisions.push(decision);
    return delivery.kind === 'answered' ? { kind: 'answered', reply: this.decisionReply } : delivery;
  }

  async waiting(tenant: string, limit: number): Promise<WaitingTask[]> {
    this.#reach();
    const own = this.waits.filter((wait) => wait.tenant === tenant);
    return own
      .sort((one, other) => one.waitingSince - other.waitingSince)
      .slice(0, limit)
      .map(({ tenant: _tenant, ...wait }) => wait);
  }

  async startedWith(taskId: string): Promise<PlannedStart | null> {
    return this.areHistoriesReadable ? (this.runs.get(taskId)?.start ?? null) : null;
  }

  /** The workflow returns. */
  complete(taskId: string, outcome: Partial<TaskOutcome>): void {
    const run = this.#run(taskId);
    const { operationId, action } = run.start.plan;
    run.state = 'completed';
    run.outcome = {
      taskId,
      operationId,
      action,
      status: 'completed',
      effect: 'applied',
      cause: 'committed',
      replayed: false,
      autoRetry: true,
      cancelRequested: false,
      result: { kind: 'inline', value: null },
      error: null,
      ...outcome,
    };
    this.#announce();
  }

  /** Somebody terminates it from outside. */
  kill(taskId: string): void {
    this.#run(taskId).state = 'killed';
    this.#announce();
  }

  /** Retention has passed, or an operator deleted it. */
  forget(taskId: string): void {
    this.runs.delete(taskId);
  }

  #run(taskId: string): Run {
    const run = this.runs.get(taskId);
    if (!run) throw new Error(`no workflow ${taskId}`);
    return run;
  }

  #tell(taskId: string, message: string): DeliveryAnswer {
    this.#reach();
    const run = this.runs.get(taskId);
    if (!run) return { kind: 'absent' };
    if (run.state !== 'running') return { kind: 'closed' };
    run.told.push(message);
    return this.isWorkerAlive
      ? { kind: 'answered', reply: { accepted: true, code: 'requested', status: 'running' } }
      : { kind: 'stored' };
  }

  #reach(): void {
    if (!this.isReachable) throw new HoldfastError('engine_unavailable', 'Temporal did not answer.');
  }

  #announce(): void {
    const waiting = this.#closed;
    this.#closed = [];
    for (const wake of waiting) wake();
  }

  #untilClosed(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms);
      const wake = (): void => {
        clearTimeout(timer);
        resolve();
      };
      this.#closed.push(wake);
      signal?.addEventListener('abort', wake, { once: true });
    });
  }
}

function stateOf(taskId: string, { start, outcome, told }: Run): TaskState {
  const { plan, ordinal } = start;
  const started: TaskEvent = {
    v: 1,
    seq: 1,
    type: 'task_started',
    at: 1,
    data: { taskId, action: plan.action, ordinal, plan },
  };
  const state = reduce(null, started);
  if (outcome === null && told.includes('cancel')) {
    return reduce(state, { v: 1, seq: 2, type: 'cancel_requested', at: 2, data: { by: 'someone' } });
  }
  if (outcome === null) return state;
  const { effect, cause, error, cancelRequested, replayed, result } = outcome;
  const end = {
    status: outcome.status as 'completed',
    effect: effect ?? 'none',
    cause: cause ?? 'committed',
    error,
    cancelRequested,
  };
  return reduce(state, { v: 1, seq: 2, type: 'task_ended', at: 2, data: { end, result, replayed } });
}
