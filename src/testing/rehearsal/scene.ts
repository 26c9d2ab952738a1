/** One operation on stage: its identity, what may be done to it, and what it was seen to do. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { HoldfastClient } from '../../client/index.ts';
import type {
  ApprovalView,
  DecisionAnswer,
  DecisionInput,
  MessageAnswer,
  TaskAnswer,
  TaskDetail,
} from '../../client/task-client.ts';
import { operationIdOf, taskIdOf } from '../../contract/ids.ts';
import type { Action } from '../../contract/implement-action.ts';
import { planOperation } from '../../contract/plan-operation.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { JsonObject } from '../../task/json.ts';
import type { PlanApproval, Principal } from '../../task/plan.ts';
import type { CleanRun } from './forge.ts';
import { approver, yesTo } from './people.ts';
import type { Part } from './scripts.ts';
import type { Terms } from './terms.ts';
import { isTerminal } from '../../task/outcome.ts';

/** What a scene is played with. */
export interface Props {
  /** With this operation's contract and the scripted handlers. */
  action: Action;
  terms: Terms;
  client: HoldfastClient;
  /** As another process would have it. */
  otherClient: HoldfastClient;
  ledger: Ledger;
  principal: Principal;
  hashKey: Uint8Array | undefined;
  patienceMs: number;
  /** The run that a task is in. */
  runId(taskId: string): Promise<string>;
  key: string;
  args: JsonObject;
  /** What an approver makes of them; null where the rehearsal does not say. */
  edited: JsonObject | null;
  /** Undefined before it. */
  clean: CleanRun | undefined;
}

/** The name of no step. */
const NOTHING = 'rehearsed-noise';
const NOISE_MAX = 40;
/** Between two looks at a task. */
const LOOK_MS = 50;
/** Longer than a retry that was not held back would wait. */
const HOLD_MS = 750;

export class Scene {
  readonly props: Props;
  readonly operationId: string;
  readonly taskId: string;
  readonly part: Part = { script: {}, calls: {} };
  /** What the scenario itself saw go wrong. */
  readonly objections: string[] = [];

  constructor(props: Props) {
    this.props = props;
    const { principal, action, key } = props;
    this.operationId = operationIdOf(principal.tenant, action.contract.name, key);
    this.taskId = taskIdOf(this.operationId, 1);
  }

  /** What policy asks for the arguments that an approver made of it; null where they are the caller's. */
  #askedAgain: PlanApproval | null = null;

  /** What policy asks for this call; null when it asks nobody. */
  get rule(): PlanApproval | null {
    return this.planned().plan.approval ?? null;
  }

  /** Started, and approved by everybody whom policy asks. */
  async start(client = this.props.client): Promise<TaskAnswer> {
    const started = await this.call(client);
    if (this.rule !== null && !started.replayed) {
      const asked = await this.#asked();
      if (asked !== null) await this.approve(asked);
    }
    return started;
  }

  /** Started; whoever policy asks has not answered. */
  call(client = this.props.client): Promise<TaskAnswer> {
    const { action, args, key, principal } = this.props;
    return client.start({ action: action.contract.name, args, key, principal });
  }

  /** Started, and waiting for its first approver. Throws where nobody is asked. */
  async callUntilAsked(): Promise<ApprovalView> {
    await this.call();
    const asked = await this.#asked();
    if (asked === null) throw new Error('nobody was asked for an approval');
    return asked;
  }

  /** What is asked; null where the task goes on, or ends, without a person. */
  async #asked(): Promise<ApprovalView | null> {
    const answer = await this.wait();
    if (answer.status !== 'awaiting_approval') return null;
    const { client, principal } = this.props;
    return answer.approval ?? (await client.detail(this.taskId, principal)).approval;
  }

  /** Until the task has ended or needs a person. */
  wait(): Promise<TaskAnswer> {
    const { client, principal, patienceMs } = this.props;
    return client.wait(this.taskId, principal, { timeoutMs: patienceMs });
  }

  /** Until its status is that, or can't become that any more. */
  async waitFor(status: string): Promise<void> {
    const { client, principal, patienceMs } = this.props;
    const seen = new AbortController();
    const onChange = (answer: TaskAnswer): void => {
      if (answer.status === status) seen.abort();
    };
    await client.wait(this.taskId, principal, { timeoutMs: patienceMs, signal: seen.signal, onChange });
  }

  /** Looks again and again until it is so, or the task has ended. */
  async until(isSo: (detail: TaskDetail) => boolean): Promise<TaskDetail> {
    const { client, principal, patienceMs } = this.props;
    const deadline = Date.now() + patienceMs;
    for (;;) {
      const detail = await client.detail(this.taskId, principal);
      if (isSo(detail) || isTerminal(detail.status)) return detail;
      if (Date.now() > deadline) throw new Error(`it is still ${detail.status}`);
      await sleep(LOOK_MS);
    }
  }

  /** Everybody whom policy asks says yes. */
  async approve(asked: ApprovalView): Promise<void> {
    this.expect(this.part.calls.execute === undefined, 'execute was called before anybody approved');
    for (let number = 1; number <= asked.quorum; number += 1) {
      const { accepted, code, message } = await this.decide(yesTo(asked), number);
      if (!accepted) throw new Error(`approver ${number} was refused: ${code}. ${message ?? ''}`.trim());
    }
  }

  /** Says it as the n-th approver does; as the requester where that is 0. */
  decide(decision: DecisionInput, number = 1): Promise<DecisionAnswer> {
    const { client, principal } = this.props;
    const rule = this.#askedAgain ?? this.rule;
    const by = number === 0 || rule === null ? principal : approver(principal, rule, number);
    return client.decide(this.taskId, by, decision);
  }

  /** An approver changes the arguments; what policy asks about the new ones beyond that is answered by `then`. */
  async edit(then: (again: ApprovalView) => Promise<unknown>): Promise<ApprovalView> {
    const { edited, terms } = this.props;
    if (edited === null) throw new Error('nobody says what the arguments are edited to');
    const asked = await this.callUntilAsked();
    const { callId } = asked;
    const { code } = await this.decide({ kind: 'edit', callId, arguments: edited });
    const expected = terms.edited?.asksAgain ? 'edited_needs_approval' : 'edited';
    this.expect(code === expected, `the edit was answered ${code}; the promise is ${expected}`);
    if (code !== 'edited_needs_approval') return asked;
    const { approval } = await this.until(
      (each) => each.approval !== null && each.approval.callId !== callId,
    );
    if (approval === null) throw new Error('nobody was asked about the edited arguments');
    this.#askedAgain = this.planned(edited).plan.approval ?? null;
    await then(approval);
    return asked;
  }

  interrupt(): Promise<MessageAnswer> {
    return this.props.client.interrupt(this.taskId, this.props.principal, 'rehearsed');
  }

  resume(): Promise<MessageAnswer> {
    return this.props.client.resume(this.taskId, this.props.principal);
  }

  /** What was under way is over; then, for longer than any retry would wait, nothing begins (S7.2). */
  async standsStill(): Promise<void> {
    const held = await this.until(
      ({ interrupted, attempts, status }) =>
        status === 'needs_attention' ||
        (interrupted === true && attempts.every(({ finishedAt }) => finishedAt !== null)),
    );
    const mayEnd = held.status === 'needs_attention' || this.props.terms.retries === 0;
    this.expect(held.interrupted === true || mayEnd, `it went on while it was interrupted: ${held.status}`);
    const before = { ...this.part.calls };
    await sleep(HOLD_MS);
    const { execute, rollback } = this.part.calls;
    this.expect(execute === before.execute, 'execute was called while the task was interrupted');
    this.expect(rollback === before.rollback, 'rollback was called while the task was interrupted');
  }

  /** Asked about what is not there until the history is long, and its run continues as new (S3.6). */
  async continuedAsNew(): Promise<void> {
    const { runId } = this.props;
    const before = await runId(this.taskId);
    for (let asked = 0; asked < NOISE_MAX && (await runId(this.taskId)) === before; asked += 1)
      await this.noise();
    this.expect((await runId(this.taskId)) !== before, 'its run did not continue as new');
  }

  /** A decision about nothing that is there: some events, and nothing else. */
  async noise(): Promise<void> {
    const { accepted } = await this.decide({ kind: 'reject', callId: `${NOTHING}#2` });
    this.expect(!accepted, 'a decision about nothing was accepted');
  }

  cancel(): Promise<MessageAnswer> {
    return this.props.client.cancel(this.taskId, this.props.principal, 'rehearsed');
  }

  expect(isAsPromised: boolean, objection: string): void {
    if (!isAsPromised) this.objections.push(objection);
  }

  /** As planned by whoever called it: what an attempt of this operation is told. */
  planned(args = this.props.args) {
    const { action, key, principal, hashKey } = this.props;
    return planOperation(action, { args, key, principal, hashKey });
  }
}
