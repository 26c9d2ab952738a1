/** One run of a procedure on stage: its steps under their scripts, the people it asks, and what was seen of it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeadline } from '../../../client/engine-error.ts';
import type { ApprovalView, TaskAnswer, TaskDetail } from '../../../client/task-client.ts';
import { operationIdOf, rollbackOperationId } from '../../../contract/ids.ts';
import { stepOfCallId } from '../../../task/approval.ts';
import { isTerminal } from '../../../task/outcome.ts';
import type { TaskEffect } from '../../../task/outcome.ts';
import type { Principal } from '../../../task/plan.ts';
import { yesTo } from '../people.ts';
import type { Scene } from '../scene.ts';
import type { Part, Script } from '../scripts.ts';
import type { Stage } from '../stage.ts';
import { courseOf } from './course.ts';
import type { Course, CourseStep, Told } from './course.ts';

/** Longer than a step that was not held back would need to begin. */
const HOLD_MS = 1_000;
const LOOK_MS = 50;
/** Decisions about nothing that make any history a long one. */
const NOISE = 9;
const QUERY_MS = 3_000;
const QUERIES_MAX = 5;
/** More approvals than that are no procedure's. */
const ASKED_MAX = 100;

/** What a procedure's task says of a step. */
export interface StepSaid {
  step: string;
  effect: TaskEffect | null;
}

const approverOf = ({ tenant }: Principal, { roles }: ApprovalView, number: number): Principal => ({
  tenant,
  subject: `rehearsal-approver-${number}`,
  roles,
});

export class ProcedureScene {
  readonly scene: Scene;
  /** Steps in the order in which their rollback was first called. */
  readonly undone: string[] = [];
  /** Those of them that were when it was interrupted; null where it was not meanwhile. */
  undoneBefore: readonly string[] | null = null;
  isResumed = false;
  /** What people do who are asked about a step; those of no other say yes. */
  readonly says = new Map<string, 'no' | 'nothing'>();
  /** Happens before anybody says yes. */
  beforeApproval?: (asked: ApprovalView) => Promise<void>;
  /** Whom it asked about which step, and what follows where nobody answers. */
  readonly asked = new Map<string, ApprovalView['onExpiry']>();
  readonly #stage: Stage;
  readonly #known = new Map<string, string>();
  readonly #parts = new Map<string, Part>();

  constructor(scene: Scene, stage: Stage, steps: readonly CourseStep[]) {
    this.scene = scene;
    this.#stage = stage;
    for (const each of steps) this.#know(each);
    stage.scripts.addTask(scene.taskId, (operationId) => this.partOf(operationId));
  }

  /** S1.2: the operation of a step. */
  operationIdOf({ step, action }: Pick<CourseStep, 'step' | 'action'>): string {
    return operationIdOf(this.#stage.principal.tenant, action, `${this.scene.taskId}/${step}`);
  }

  /** What is done to a step. */
  direct(step: CourseStep, script: Script): void {
    const part = this.partOf(this.operationIdOf(step));
    const { rollback } = script;
    part.script = {
      ...script,
      rollback: (call) => {
        if (call.turn === 1) this.undone.push(step.step);
        return rollback ? rollback(call) : call.real();
      },
    };
  }

  partOf(operationId: string): Part {
    const id = this.#known.get(operationId) ?? operationId;
    const part = this.#parts.get(id) ?? { script: {}, calls: {} };
    this.#parts.set(id, part);
    return part;
  }

  #know(step: CourseStep): void {
    const operationId = this.operationIdOf(step);
    this.#known.set(operationId, operationId);
    this.#known.set(rollbackOperationId(operationId), operationId);
    this.direct(step, {});
  }

  call(): Promise<TaskAnswer> {
    return this.scene.call();
  }

  /** Until it has ended or is in need of a person; whoever is asked for an approval says yes, unless told otherwise. */
  async wait(): Promise<TaskAnswer> {
    for (let asked = 0; asked < ASKED_MAX; asked += 1) {
      const answer = await this.scene.wait();
      if (answer.status !== 'awaiting_approval') return answer;
      await this.#answer(answer);
    }
    throw new Error(`it asked for more than ${ASKED_MAX} approvals`);
  }

  /** Fills the history beside the first call of a step: the run continues as new once that is over. */
  readonly fillsHistory: Script = {
    execute: async ({ turn, real }) => {
      const answer = await real();
      if (turn === 1) for (let asked = 0; asked < NOISE; asked += 1) await this.scene.noise();
      return answer;
    },
  };

  /** As `wait`, where the run continues as new meanwhile, once at least; its code may be found to be another then. */
  async waitOverRuns(): Promise<TaskAnswer> {
    const { runId } = this.scene.props;
    const { taskId } = this.scene;
    const before = await runId(taskId);
    const stuck = this.#untilStuck();
    const answer = await Promise.race([this.wait(), stuck.found]).finally(stuck.leave);
    this.scene.expect((await runId(taskId)) !== before, 'its run did not continue as new');
    return answer;
  }

  #untilStuck(): { found: Promise<never>; leave: () => void } {
    let isLeft = false;
    const look = async (): Promise<never> => {
      while (!(await this.#stage.isStuck(this.scene.taskId).catch(() => false))) {
        if (isLeft) return new Promise<never>(() => undefined);
        await sleep(LOOK_MS * 10);
      }
      throw new Error('when its code was run anew over what is on record, it asked for something else');
    };
    return { found: look(), leave: () => (isLeft = true) };
  }

  /** Until it is so, or has ended; approvals are given meanwhile. */
  async until(isSo: (detail: TaskDetail) => boolean): Promise<TaskDetail> {
    for (;;) {
      const detail = await this.scene.until((each) => isSo(each) || each.status === 'awaiting_approval');
      if (isSo(detail) || isTerminal(detail.status)) return detail;
      await this.#answer(detail);
      await sleep(LOOK_MS);
    }
  }

  /** Interrupted, and for a while none of these steps begins (S7.2). */
  async holdsBack(steps: readonly CourseStep[]): Promise<void> {
    await this.until(({ interrupted }) => interrupted === true);
    await sleep(HOLD_MS);
    const { client, principal } = this.scene.props;
    const { status } = await client.get(this.scene.taskId, principal);
    this.scene.expect(!isTerminal(status), `it went on while it was interrupted: ${status}`);
    for (const step of steps) {
      const { execute } = this.partOf(this.operationIdOf(step)).calls;
      this.scene.expect(execute === undefined, `step ${step.step} began while it was interrupted`);
    }
  }

  /** Interrupted while a step is undone, and for a while the undoing of no other begins (S7.2). */
  async holdsBackUndoing(): Promise<void> {
    await this.until(({ interrupted }) => interrupted === true);
    await sleep(HOLD_MS);
    const begun = this.undone.filter((step) => this.undoneBefore?.includes(step) === false);
    for (const step of begun)
      this.scene.expect(false, `the undoing of step ${step} began while it was interrupted`);
  }

  async resumed(): Promise<TaskAnswer> {
    this.isResumed = true;
    await this.scene.resume();
    return this.wait();
  }

  async #answer(answer: TaskAnswer): Promise<void> {
    const { client, principal } = this.scene.props;
    const asked = answer.approval ?? (await client.detail(this.scene.taskId, principal)).approval;
    if (!asked) return;
    const { callId } = asked;
    const step = stepOfCallId(callId);
    this.asked.set(step, asked.onExpiry);
    switch (this.says.get(step)) {
      case undefined:
        await this.beforeApproval?.(asked);
        return this.#approve(asked);
      case 'no': {
        const by = approverOf(principal, asked, 1);
        await client.decide(this.scene.taskId, by, { kind: 'reject', callId, reason: 'rehearsed' });
        return;
      }
      case 'nothing':
        await this.scene.until(({ approval }) => approval?.callId !== callId);
    }
  }

  async #approve(asked: ApprovalView): Promise<void> {
    const { client, principal } = this.scene.props;
    for (let number = asked.approvedBy.length + 1; number <= asked.quorum; number += 1) {
      const by = approverOf(principal, asked, number);
      const { accepted, code, message } = await client.decide(this.scene.taskId, by, yesTo(asked));
      if (!accepted && code !== 'already_decided')
        throw new Error(
          `approver ${number} of ${asked.callId} was refused: ${code}. ${message ?? ''}`.trim(),
        );
    }
  }

  /** As the task tells it; a task that can't be asked is a broken promise of its own. */
  async seen(): Promise<{ course: Course; steps: StepSaid[] }> {
    try {
      const [events, state] = await Promise.all([
        this.#asked<Told[]>('events'),
        this.#asked<{ steps?: StepSaid[] }>('task'),
      ]);
      return { course: courseOf(events), steps: state.steps ?? [] };
    } catch (error) {
      const why =
        error instanceof Error ? (error.cause instanceof Error ? error.cause : error).message : String(error);
      const objection = `the task could not be read: ${why}`;
      if (!this.scene.objections.includes(objection)) this.scene.objections.push(objection);
      return { course: { steps: [], committed: [] }, steps: [] };
    }
  }

  /** A query that meets the closing of its task can be lost by the server: it is asked again then. */
  async #asked<T>(name: string): Promise<T> {
    const { temporal } = this.#stage.holdfast;
    const handle = temporal.workflow.getHandle(this.scene.taskId);
    for (let left = QUERIES_MAX; ; left -= 1) {
      try {
        return await temporal.withDeadline(Date.now() + QUERY_MS, () => handle.query<T>(name));
      } catch (error) {
        if (left <= 1 || !isDeadline(error)) throw error;
      }
    }
  }
}
