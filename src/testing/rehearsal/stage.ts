/**
 * Where a rehearsal takes place: a Holdfast of its own, with the user's action under scripts.
 *
 * Owns the server (unless one was given), the ledger and the worker; all of them are gone after `close`. The user's own
 * ledger and Temporal are never touched: what is real is the target.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Client } from '@temporalio/client';
import type { ActivityInterceptors } from '@temporalio/worker';
import type { Kysely } from 'kysely';
import { deriveHmacKey, HoldfastClient, parseEncryptionKeys } from '../../client/index.ts';
import type { ActionContract } from '../../contract/define-action.ts';
import { HoldfastError } from '../../contract/error.ts';
import { operationIdOf } from '../../contract/ids.ts';
import type { Action } from '../../contract/implement-action.ts';
import type { StepRequest } from '../../task/activity-api.ts';
import { APPROVAL_ACTION } from '../../task/approval.ts';
import type { JsonObject } from '../../task/json.ts';
import type { PlanApproval } from '../../task/plan.ts';
import { createTestHoldfast } from '../create-test-holdfast.ts';
import type { TestHoldfast } from '../create-test-holdfast.ts';
import type { TestServer } from '../test-server.ts';
import type { CleanRun } from './forge.ts';
import { Scene } from './scene.ts';
import { Scripts } from './scripts.ts';
import { rehearsable, termsOf } from './terms.ts';
import type { EditTerms, Terms } from './terms.ts';

const hasSecrets = ({ contract: { sensitive } }: Action): boolean =>
  sensitive.input.length + sensitive.output.length > 0;

/** An approval that a procedure's code asks for expires as soon as the script of its step says. */
function soonExpired(scripts: Pick<Scripts, 'expiryOf'>): () => ActivityInterceptors {
  const expiring = (request: unknown): unknown => {
    const { start, taskId } = request as Partial<StepRequest>;
    if (start?.action !== APPROVAL_ACTION || taskId === undefined) return request;
    const { principal, action, key, args } = start;
    const operationId = operationIdOf(principal.tenant, action, key);
    const expiresIn = scripts.expiryOf({ operationId, taskId });
    if (expiresIn === undefined) return request;
    const policy = { ...(args as { policy?: JsonObject }).policy, expiresIn };
    return { ...(request as StepRequest), start: { ...start, args: { ...args, policy } } };
  };
  return () => ({
    inbound: { execute: (input, next) => next({ ...input, args: input.args.map(expiring) }) },
  });
}

/** Attempts at one workflow task that no busy machine makes. */
const ATTEMPTS_STUCK = 4;

async function runIdOf({ workflow }: Client, taskId: string): Promise<string> {
  return (await workflow.getHandle(taskId).describe()).runId;
}

/** A step writes about ten. */
const HISTORY_EVENTS_MAX = 40;

/** What a task may take beyond its own deadlines, on a busy machine. */
const PATIENCE_MS = 60_000;

export interface StageOptions {
  /** One that is running, of kind `local`: where time is skipped, one scenario's wait would be another's deadline. */
  server?: TestServer;
  /** Address of the rehearsal's ledger. Default: a new SQLite file, deleted at the end. */
  store?: string;
  /** As in the configuration: the tables of transactional actions. */
  setup?(ledger: Kysely<unknown>): Promise<void>;
}

/** What is on stage. */
export interface Cast {
  /** What is called. */
  rehearsed: Action;
  /** Whose handlers are called: the same, or those of a procedure's steps. */
  actions: readonly Action[];
  /** Absolute path of the file with the procedure's code, where one is called. */
  code?: string;
  /** On a server of its own where runs continue as new after a few dozen events (S3.6). */
  shortHistories?: boolean;
  /** Of what an approver makes of its arguments. */
  edited?: EditTerms;
}

export class Stage {
  readonly terms: Terms;
  readonly holdfast: TestHoldfast;
  readonly scripts: Scripts;
  /** Keys mean something within a tenant alone: rehearsals on one server or store never meet. */
  readonly principal = { tenant: `rehearsal-${randomUUID()}`, subject: 'rehearsal', roles: [] };
  readonly #rehearsed: Action;
  readonly #hashKey: Uint8Array | undefined;

  private constructor(
    rehearsed: Action,
    terms: Terms,
    scripts: Scripts,
    holdfast: TestHoldfast,
    hashKey: Uint8Array | undefined,
  ) {
    this.#rehearsed = rehearsed;
    this.terms = terms;
    this.scripts = scripts;
    this.holdfast = holdfast;
    this.#hashKey = hashKey;
  }

  static async open(given: Cast, approval: PlanApproval | null, options: StageOptions): Promise<Stage> {
    if (options.server?.kind === 'time-skipping') {
      throw new HoldfastError(
        'invalid_configuration',
        "A rehearsal needs a server on the real clock: openTestServer('local').",
      );
    }
    const scripts = new Scripts();
    const rehearsed = rehearsable(given.rehearsed, scripts);
    const actions = given.actions.map((action) => rehearsable(action, scripts));
    const isSecret = [rehearsed, ...actions].some(hasSecrets);
    const encryptionKey = isSecret ? randomBytes(32).toString('base64') : undefined;
    const hashKey = deriveHmacKey(parseEncryptionKeys(encryptionKey)) ?? undefined;
    const holdfast = await createTestHoldfast({
      actions,
      ...(given.code !== undefined && { procedures: { contracts: [rehearsed], code: given.code } }),
      worker: false,
      faults: scripts.faults,
      interceptors: [soonExpired(scripts)],
      // A running server's client has no key for this rehearsal's secrets, and takes long histories.
      server: isSecret || given.shortHistories ? 'local' : (options.server ?? 'local'),
      ...(given.shortHistories && { historyEventsMax: HISTORY_EVENTS_MAX }),
      ...(options.store !== undefined && { store: options.store }),
      ...(encryptionKey !== undefined && { encryptionKey }),
    });
    try {
      const { setup } = options;
      if (setup) await holdfast.ledger.transaction((_transitions, tx) => setup(tx as Kysely<unknown>));
      await holdfast.startWorker();
    } catch (error) {
      await holdfast.close();
      throw error;
    }
    return new Stage(
      rehearsed,
      termsOf(given.rehearsed, approval, given.edited ?? null),
      scripts,
      holdfast,
      hashKey,
    );
  }

  /** An operation of its own, under a contract of its own. */
  scene(
    args: JsonObject,
    key: string,
    contractOf: (contract: ActionContract) => ActionContract,
    clean: CleanRun | undefined,
    edited: JsonObject | null = null,
  ): Scene {
    const action: Action = { ...this.#rehearsed, contract: contractOf(this.#rehearsed.contract) };
    const { attemptMs, verifyMs, settleMs } = action.contract.deadlines;
    const scene = new Scene({
      action,
      key,
      args,
      edited,
      clean,
      terms: this.terms,
      client: this.#client(action, true),
      otherClient: this.#client(action, false),
      ledger: this.holdfast.ledger,
      principal: this.principal,
      hashKey: this.#hashKey,
      runId: (taskId) => runIdOf(this.holdfast.temporal, taskId),
      patienceMs: PATIENCE_MS + 2 * (attemptMs + settleMs) + verifyMs,
    });
    this.scripts.add(scene.operationId, scene.part);
    return scene;
  }

  /** Whether its code asks otherwise than on record: no worker gets any further with it. */
  async isStuck(taskId: string): Promise<boolean> {
    const { raw } = await this.holdfast.temporal.workflow.getHandle(taskId).describe();
    return (raw.pendingWorkflowTask?.attempt ?? 0) >= ATTEMPTS_STUCK;
  }

  #client(action: Action, hearsHints: boolean): HoldfastClient {
    const { temporal, ledger, taskQueue, hints } = this.holdfast;
    return new HoldfastClient({
      temporal,
      ledger,
      taskQueue,
      actions: [action],
      hmacKey: this.#hashKey ?? null,
      ...(hearsHints && { hints }),
    });
  }

  close(): Promise<void> {
    return this.holdfast.close();
  }
}
