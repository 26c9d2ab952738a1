/**
 * `TaskClient` over a Temporal client and the ledger. Safe to use from many places at once; many may run side by side.
 *
 * Owns nothing durable: every promise is kept by the row and the workflow, so a client may die at any point (S1.5).
 */
import type { Client } from '@temporalio/client';
import { actionsBy } from '../contract/action-named.ts';
import type { Action } from '../contract/implement-action.ts';
import type { StandingRule } from '../contract/standing-rule.ts';
import type { AuditEntry, Ledger } from '../ledger/ledger.ts';
import type { JsonObject } from '../task/json.ts';
import type { Principal } from '../task/plan.ts';
import { toAnswer } from './answer.ts';
import { attend, isUnattendedSince } from './attendance.ts';
import type { ClientDeps } from './client-deps.ts';
import type { TaskEngine } from './engine.ts';
import { approvalView } from './approval-view.ts';
import { Decisions } from './decisions.ts';
import { createHints } from './hints.ts';
import type { Hints } from './hints.ts';
import { attemptsOfRow, listTasks, rowInDoubt } from './list.ts';
import type { TaskFilter } from './list.ts';
import { Messenger } from './messenger.ts';
import { Reader } from './reader.ts';
import { StandingRulebook } from './standing-rulebook.ts';
import type { RuleInput } from './standing-rulebook.ts';
import { Starter } from './starter.ts';
import type {
  DecisionAnswer,
  DecisionInput,
  FindRequest,
  InboxEntry,
  MessageAnswer,
  ResolutionInput,
  StartRequest,
  TaskAnswer,
  TaskClient,
  TaskDetail,
} from './task-client.ts';
import type { TaskFacts } from './task-facts.ts';
import { TemporalEngine } from './temporal-engine.ts';
import { Waiter } from './waiter.ts';

const INBOX_LIMIT_DEFAULT = 200;

export interface HoldfastClientOptions {
  temporal: Client;
  ledger: Ledger;
  /** What may be started here; reading needs none. */
  actions: readonly Action[];
  /** Others, which may come and go: tools of other people's servers. */
  moreActions?: (name: string) => Action | undefined;
  taskQueue: string;
  /** `deriveHmacKey`; null or absent when no contract has sensitive fields. */
  hmacKey?: Uint8Array | null;
  /** That the workers publish to: of this process, or of all (`openPostgresHints`). Default: one nobody publishes to. */
  hints?: Hints;
  /** True only where a worker of this process runs on the client's own native connection. */
  eagerStart?: boolean;
  /** How long a start is tried while Temporal is away, before `engine_unavailable`. Default 10 s. */
  startDeadlineMs?: number;
}

export class HoldfastClient implements TaskClient {
  readonly #deps: ClientDeps;
  readonly #reader: Reader;
  readonly #starter: Starter;
  readonly #waiter: Waiter;
  readonly #messenger: Messenger;
  readonly #decisions: Decisions;
  readonly #rulebook: StandingRulebook;

  /** `engine` replaces Temporal; for tests that drive it by hand. */
  constructor(options: HoldfastClientOptions, engine?: TaskEngine) {
    const { ledger, actions, moreActions, hmacKey, hints, eagerStart } = options;
    this.#deps = {
      engine: engine ?? new TemporalEngine(options),
      ledger,
      actions: actionsBy(actions, moreActions),
      hashKey: hmacKey ?? undefined,
      hints: hints ?? createHints(),
      hearsEnds: hints !== undefined && eagerStart === true,
      now: Date.now,
    };
    this.#reader = new Reader(this.#deps);
    this.#waiter = new Waiter(this.#deps, this.#reader);
    this.#starter = new Starter(this.#deps, this.#reader, this.#waiter);
    this.#messenger = new Messenger(this.#deps, this.#reader);
    this.#decisions = new Decisions(this.#deps, this.#reader);
    this.#rulebook = new StandingRulebook(this.#deps);
  }

  async start(request: StartRequest): Promise<TaskAnswer> {
    return this.#answer(await this.#starter.start(request));
  }

  async get(taskId: string, principal: Principal): Promise<TaskAnswer> {
    return this.#answer((await this.#reader.read(taskId, principal.tenant)).facts);
  }

  async find({ action, key, principal }: FindRequest): Promise<TaskAnswer> {
    return this.#answer((await this.#reader.find(action, key, principal.tenant)).facts);
  }

  async detail(
    taskId: string,
    { tenant }: Principal,
    { awaitsWorker = false }: { awaitsWorker?: boolean } = {},
  ): Promise<TaskDetail> {
    const { engine, ledger } = this.#deps;
    const { facts, state, row } = await (awaitsWorker
      ? this.#reader.readAttended(taskId, tenant)
      : this.#reader.read(taskId, tenant, { fresh: true }));
    const [answer, events, alerts, attempts, late] = await Promise.all([
      this.#answer(facts),
      state === null ? null : engine.events(row?.taskId ?? taskId),
      ledger.alerts({ tenant, taskId: row?.taskId ?? taskId }),
      state?.attempts ?? (row === null ? [] : attemptsOfRow(ledger, row)),
      rowInDoubt(ledger, state, row),
    ]);
    return {
      ...answer,
      events: events ?? [],
      attempts,
      steps: state?.steps ?? [],
      approval: approvalView(state),
      cancelAsked: facts.cancelRequested,
      nextEligibleAt: facts.nextEligibleAt,
      lateOutcome: late?.lateOutcome ?? null,
      lastFailure: state?.lastFailure ?? row?.failure ?? null,
      alerts,
    };
  }

  async wait(
    taskId: string,
    principal: Principal,
    options: { timeoutMs: number; signal?: AbortSignal; onChange?: (answer: TaskAnswer) => void },
  ): Promise<TaskAnswer> {
    const { onChange, ...bounds } = options;
    const facts = await this.#waiter.wait(taskId, principal.tenant, {
      ...bounds,
      ...(onChange && { onChange: (changed) => this.#tell(changed, onChange) }),
    });
    return this.#answer(facts);
  }

  cancel(taskId: string, principal: Principal, reason?: string): Promise<MessageAnswer> {
    return this.#messenger.cancel(taskId, principal, reason);
  }

  attend(taskId: string, principal: Principal, how: 'waiting' | 'handed'): Promise<number> {
    return attend(this.#deps.ledger, taskId, how, this.#reader.ownRow(taskId, principal.tenant));
  }

  async cancelUnattended(taskId: string, principal: Principal, since: number): Promise<MessageAnswer | null> {
    if (!(await isUnattendedSince(this.#deps.ledger, taskId, since))) return null;
    return this.#messenger.cancel(taskId, principal, 'abandoned: nobody waits for it any longer');
  }

  resolve(taskId: string, principal: Principal, resolution: ResolutionInput): Promise<MessageAnswer> {
    return this.#messenger.resolve(taskId, principal, resolution);
  }

  decide(taskId: string, principal: Principal, decision: DecisionInput): Promise<DecisionAnswer> {
    return this.#decisions.decide(taskId, principal, decision);
  }

  /** S4.5: allows in advance, in the principal's name, what the rule covers; refused where it can be none. */
  allow(principal: Principal, rule: RuleInput): Promise<StandingRule> {
    return this.#rulebook.allow(principal, rule);
  }

  /** Throws what `allow` would throw about the rule itself; stores nothing. */
  checkRule(rule: RuleInput): void {
    this.#rulebook.check(rule);
  }

  /** Calls that are planned from now on ride on it no more; those planned before go on. Anybody of the tenant may. */
  revokeRule(id: string, principal: Principal, reason?: string): Promise<StandingRule> {
    return this.#rulebook.revoke(id, principal, reason);
  }

  /** Those that stand, oldest first; `all`: revoked and expired ones too. */
  rules(principal: Principal, filter?: { action?: string; all?: boolean }): Promise<StandingRule[]> {
    return this.#rulebook.list(principal, filter);
  }

  interrupt(taskId: string, principal: Principal, reason?: string): Promise<MessageAnswer> {
    return this.#messenger.interrupt(taskId, principal, reason);
  }

  resume(taskId: string, principal: Principal): Promise<MessageAnswer> {
    return this.#messenger.resume(taskId, principal);
  }

  answer(taskId: string, principal: Principal, answers: JsonObject): Promise<MessageAnswer> {
    return this.#messenger.answer(taskId, principal, answers);
  }

  inbox(
    principal: Principal,
    { limit = INBOX_LIMIT_DEFAULT }: { limit?: number } = {},
  ): Promise<InboxEntry[]> {
    return this.#deps.engine.waiting(principal.tenant, limit);
  }

  onHint(taskId: string, listener: () => void): () => void {
    return this.#deps.hints.subscribe(taskId, listener);
  }

  async list(principal: Principal, filter: TaskFilter = {}): Promise<TaskAnswer[]> {
    const found = await listTasks(this.#deps, principal.tenant, filter);
    return Promise.all(found.map((facts) => this.#answer(facts)));
  }

  async audit(taskId: string, principal: Principal): Promise<AuditEntry[]> {
    const entries = await this.#deps.ledger.audit({ taskId });
    const own = entries.filter(({ tenant }) => tenant === principal.tenant);
    if (own.length === 0) await this.#reader.read(taskId, principal.tenant); // throws `task_not_found`
    return own;
  }

  #answer(facts: TaskFacts): Promise<TaskAnswer> {
    return toAnswer(this.#deps.ledger, facts);
  }

  /** A change is news, not the answer: its result, if any, is fetched when the wait answers. */
  #tell(facts: TaskFacts, onChange: (answer: TaskAnswer) => void): void {
    void this.#answer({ ...facts, result: null }).then(onChange);
  }
}
