/**
 * Workflow `remoteTask`: watches one task that another server keeps for ours (S8.4, M8.4), as a child of ours, until the
 * server says that it ended.
 *
 * Owns the timers between control calls and the order of them. Each call is an activity, supervised in the ledger; what
 * it saw is told to the parent where it changed.
 * Invariants:
 * 1. One control call at a time: a poll under way is stopped before a cancel or an answer goes out.
 * 2. A cancel asked for again changes nothing, and is taken before an answer goes out; an answer is sent again only while the remote still asks for its key.
 * 3. What it was told, what it still has to hand on, and how its last call went cross continue-as-new, which comes after the
 *    pause: a new run makes no call earlier than the old one would have.
 * 4. Failures are told and never end the watch. It ends when the remote task did, or the parent is gone.
 */
import {
  ActivityCancellationType,
  CancellationScope,
  condition,
  continueAsNew,
  getExternalWorkflowHandle,
  isCancellation,
  proxyActivities,
  setHandler,
  sleep,
} from '@temporalio/workflow';
import type { RemoteActivities } from '../src/task/activity-api.ts';
import type { Json, JsonObject } from '../src/task/json.ts';
import { isRemoteEnd } from '../src/task/remote.ts';
import type { RemoteCallAnswer, RemoteReport } from '../src/task/remote.ts';
import { isHistoryLong } from './history.ts';
import { answerRemoteSignal, attendRemoteSignal, cancelRemoteSignal, remoteToldSignal } from './messages.ts';

export interface RemoteTaskArgument {
  v: 1;
  operationId: string;
  /** Workflow id of the task that waits for it, and which of its attempts. */
  parent: string;
  attempt: number;
  /** False where a result may hold what the ledger must not keep (S2.10). */
  keepResult: boolean;
  /** Set by its own continue-as-new alone. */
  carried?: Carried;
}

interface Carried {
  isCancelAsked: boolean;
  isCancelSent: boolean;
  answers: JsonObject;
  told: string | null;
  /** The newest call, where it failed: it is looked first before it is made again. */
  failed: Call | null;
  /** Calls in a row of which nothing came. */
  fruitless: number;
}

type Facts = Extract<RemoteCallAnswer, { kind: 'facts' }>;
type Call = 'poll' | 'cancel' | 'answer';

/** Beyond the longest call and its drain (docs/limits.md `remoteCallMs`), with some wait for a slot. */
const CALL_BOUND = '20m';
const HEARTBEAT_MS = 10_000;
const PAUSE_INITIAL_MS = 1_000;
const PAUSE_MAXIMUM_MS = 60_000;
/** A message that alone changed is told at most so often: each costs the parent history. */
const TELL_AGAIN_MS = 10_000;

const activities = proxyActivities<RemoteActivities>({
  startToCloseTimeout: CALL_BOUND,
  heartbeatTimeout: HEARTBEAT_MS,
  retry: { maximumAttempts: 1 },
  cancellationType: ActivityCancellationType.WAIT_CANCELLATION_COMPLETED,
});

export async function remoteTask(argument: RemoteTaskArgument): Promise<void> {
  const watch = new Watch(argument);
  setHandler(cancelRemoteSignal, () => watch.askCancel());
  setHandler(answerRemoteSignal, (answers) => watch.take(answers));
  setHandler(attendRemoteSignal, () => undefined);
  CancellationScope.current().cancelRequested.catch((error: unknown) => {
    if (isCancellation(error)) watch.askCancel();
  });
  return CancellationScope.nonCancellable(() => watch.untilEnded());
}

class Watch {
  readonly #argument: RemoteTaskArgument;
  readonly #state: Carried;
  #wishes = 0;
  #toldAt = 0;

  constructor(argument: RemoteTaskArgument) {
    this.#argument = argument;
    const nothing = { isCancelAsked: false, isCancelSent: false, answers: {}, told: null };
    this.#state = argument.carried ?? { ...nothing, failed: null, fruitless: 0 };
  }

  askCancel(): void {
    if (this.#state.isCancelAsked) return;
    this.#state.isCancelAsked = true;
    this.#wishes += 1;
  }

  take(answers: JsonObject): void {
    Object.assign(this.#state.answers, answers);
    this.#wishes += 1;
  }

  async untilEnded(): Promise<void> {
    for (;;) {
      const wishes = this.#wishes;
      const call = this.#next();
      const answer = await this.#make(call);
      if (answer?.kind === 'unknown') return;
      if (answer?.kind === 'facts') {
        if (!(await this.#heed(call, answer)) || answer.isEnded) return;
      }
      await this.#rest(this.#pauseMs(answer), wishes);
      if (isHistoryLong()) await this.#startAfresh();
    }
  }

  #next(): Call {
    const { isCancelAsked, isCancelSent, answers, failed } = this.#state;
    const owesCancel = isCancelAsked && !isCancelSent;
    if (owesCancel && failed !== 'cancel') return 'cancel';
    return !owesCancel && Object.keys(answers).length > 0 && failed !== 'answer' ? 'answer' : 'poll';
  }

  /** Null: its worker was lost, or has no ledger. */
  async #make(call: Call): Promise<RemoteCallAnswer | null> {
    const { operationId, keepResult } = this.#argument;
    try {
      switch (call) {
        case 'cancel':
          return await activities.cancelRemoteTask({ operationId });
        case 'answer':
          return await activities.answerRemoteTask({ operationId, responses: { ...this.#state.answers } });
        case 'poll':
          return await this.#stoppable(() => activities.pollRemoteTask({ operationId, keepResult }));
        default:
          return call satisfies never;
      }
    } catch {
      return null;
    }
  }

  /** A wish that comes while it is polled ends the local call, never the remote task. */
  async #stoppable(poll: () => Promise<RemoteCallAnswer>): Promise<RemoteCallAnswer> {
    const wishes = this.#wishes;
    const scope = new CancellationScope({ cancellable: true });
    let isDone = false;
    const polling = scope.run(poll).finally(() => {
      isDone = true;
    });
    await condition(() => isDone || this.#wishes !== wishes);
    if (!isDone) scope.cancel();
    return polling;
  }

  /** False: there is nobody to tell any more. */
  async #heed(call: Call, facts: Facts): Promise<boolean> {
    const state = this.#state;
    state.failed = facts.failures > 0 && !facts.isEnded ? call : null;
    state.isCancelSent ||= facts.isCancelSent;
    const { refused = [] } = facts;
    const open = facts.seen?.kind === 'input_required' ? (facts.seen.requests ?? {}) : {};
    // Whatever came of the call: the ledger has it, the remote asks for it no more, or takes it never.
    const isTaken = (key: string): boolean =>
      facts.answered.includes(key) ||
      refused.includes(key) ||
      (call === 'poll' && facts.failures === 0 && !Object.hasOwn(open, key));
    const left = Object.entries(state.answers).filter(([key]) => !isTaken(key));
    state.answers = Object.fromEntries<Json>(left);
    const report = reportOf(facts);
    const told = JSON.stringify(withoutMessage(report, facts.failures));
    const isDue = report.kind === 'seen' && Date.now() - this.#toldAt >= TELL_AGAIN_MS;
    if (told === state.told && !(isDue && report.seen?.message !== undefined)) return true;
    state.told = told;
    this.#toldAt = Date.now();
    return this.#tell(report);
  }

  async #tell(report: RemoteReport): Promise<boolean> {
    const { parent, operationId, attempt } = this.#argument;
    try {
      await getExternalWorkflowHandle(parent).signal(remoteToldSignal, { operationId, attempt, report });
      return true;
    } catch {
      return false;
    }
  }

  #pauseMs(answer: RemoteCallAnswer | null): number {
    if (answer?.kind === 'facts') {
      this.#state.fruitless = 0;
      return answer.dueInMs;
    }
    if (answer?.kind === 'wait') {
      if (answer.why === 'superseded') this.#owesCancel();
      if (answer.why === 'busy' || answer.why === 'not_due') {
        this.#state.fruitless = 0;
        return answer.waitMs;
      }
    }
    const grownMs = PAUSE_INITIAL_MS * 2 ** Math.min(this.#state.fruitless, 10);
    this.#state.fruitless += 1;
    return Math.min(grownMs, PAUSE_MAXIMUM_MS);
  }

  /** The ledger wants a cancel before anything else. A poll after the one that failed may have been written unheard. */
  #owesCancel(): void {
    this.#state.isCancelAsked = true;
    if (this.#state.failed === 'cancel') this.#state.failed = null;
  }

  async #rest(ms: number, wishes: number): Promise<void> {
    // A poll that was stopped for a wish gives way to it at once.
    if (this.#wishes !== wishes && this.#state.fruitless <= 1) return;
    if (ms > 0 && this.#state.fruitless > 0) await sleep(ms);
    else if (ms > 0) await condition(() => this.#wishes !== wishes, ms);
  }

  async #startAfresh(): Promise<void> {
    await continueAsNew<typeof remoteTask>({ ...this.#argument, carried: this.#state });
  }
}

function reportOf({ isEnded, seen, failures, lastError, answered, refused }: Facts): RemoteReport {
  if (isEnded && seen !== null && isRemoteEnd(seen.kind))
    return { kind: 'ended', how: seen.kind, ...(seen.message !== undefined && { message: seen.message }) };
  return { kind: 'seen', seen, failures, lastError, answered, ...(refused && { refused }) };
}

/** What is worth telling at once; failures in a row at 1, 2, 4, 8 and so on. */
function withoutMessage(report: RemoteReport, failures: number): object {
  if (report.kind === 'ended') return report;
  const { seen, answered, refused } = report;
  const doublings = failures === 0 ? -1 : Math.floor(Math.log2(failures));
  return { seen: seen && { ...seen, message: undefined }, answered, refused, doublings };
}
