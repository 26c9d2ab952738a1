/**
 * The control calls about other servers' tasks, as one worker makes them: poll, cancel, answer. Each is supervised (S8.4),
 * judged, and answered with where the remote task stands by the ledger, or how long to wait before it is tried again.
 */
import { createHash } from 'node:crypto';
import { canonicalText } from '../contract/canonical.ts';
import { classifyFailure } from '../contract/classify-failure.ts';
import { systemClock } from '../contract/clock.ts';
import type { Clock } from '../contract/clock.ts';
import { LIMITS } from '../contract/limits.ts';
import { AnswerRefused } from '../contract/remote-server.ts';
import type { RemoteServer, RemoteServers, RemoteStatus } from '../contract/remote-server.ts';
import { keptText } from '../contract/text.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { RemoteCallOutcome, RemoteTaskRow, RemoteTasks } from '../ledger/remote-tasks.ts';
import type { JsonObject } from '../task/json.ts';
import type { StoredResult } from '../task/outcome.ts';
import type { RemoteCallAnswer, RemoteSeen } from '../task/remote.ts';
import { CallSlots } from './call-slots.ts';
import { superviseCall } from './supervise-call.ts';
import type { ControlCall, SupervisedAnswer } from './supervise-call.ts';

export interface RemoteCallDeps {
  ledger: RemoteTasks & Pick<Ledger, 'putPayload' | 'now'>;
  servers: RemoteServers;
  /** The owner's name in the ledger. */
  worker: string;
  clock?: Clock;
  /** Tests alone: instead of the documented limits. */
  bounds?: { leaseMs?: number; callMs?: number; drainMs?: number; callsMax?: number };
}

/** Until a task is tried again whose call went to nobody, or is somebody else's. */
const AGAIN_MS = 1_000;
const MESSAGE_LENGTH_MAX = 1_000;

export class RemoteCalls {
  readonly #deps: RemoteCallDeps;
  readonly #clock: Clock;
  readonly #slots: CallSlots;
  readonly #stopping = new AbortController();

  constructor(deps: RemoteCallDeps) {
    this.#deps = deps;
    this.#clock = deps.clock ?? systemClock;
    this.#slots = new CallSlots(deps.bounds?.callsMax ?? LIMITS.remoteCallsMax.value);
  }

  /** Ends every call here, counting none as a failure; none begins after it. Each answers within the drain bound. */
  stop(): void {
    this.#stopping.abort();
  }

  /** `keepResult` false: a result may hold what must not be kept (S2.10); it is fetched again where it is needed. */
  poll(operationId: string, keepResult: boolean, stop: AbortSignal): Promise<RemoteCallAnswer> {
    const { servers, ledger } = this.#deps;
    return this.#call(stop, {
      operationId,
      call: 'poll',
      make: async (row, signal) => {
        const status = await serverOf(servers, row).status(row.handle, signal);
        const result = keepResult ? await kept(ledger, row.tenant, status) : null;
        return { kind: 'seen', seen: seenOf(status), result, dueInMs: intervalMs(row, status) };
      },
    });
  }

  /** Asks; idempotent. Whoever comes while a cancel is under way changes nothing. */
  async cancel(operationId: string, stop: AbortSignal): Promise<RemoteCallAnswer> {
    const { servers, ledger } = this.#deps;
    await ledger.askRemoteCancel(operationId);
    return this.#call(stop, {
      operationId,
      call: 'cancel',
      make: async (row, signal) => {
        await serverOf(servers, row).cancel(row.handle, signal);
        return { kind: 'cancel_sent', dueInMs: 0 };
      },
    });
  }

  /** Each key is forwarded once: those that were answered are left out. `refused`: the server takes them never. */
  async answer(operationId: string, responses: JsonObject, stop: AbortSignal): Promise<RemoteCallAnswer> {
    const { servers } = this.#deps;
    const keys = Object.keys(responses);
    let refused: string[] = [];
    const answer = await this.#call(stop, {
      operationId,
      call: 'answer',
      keys,
      make: async (row, signal) => {
        const open = Object.fromEntries(
          Object.entries(responses).filter(([key]) => !row.answered.includes(key)),
        );
        try {
          await serverOf(servers, row).answer(row.handle, open, signal);
        } catch (error) {
          if (error instanceof AnswerRefused) refused = Object.keys(open);
          throw error;
        }
        return { kind: 'answered', keys, dueInMs: 0 };
      },
    });
    return answer.kind === 'facts' && refused.length > 0 ? { ...answer, refused } : answer;
  }

  async #call(stop: AbortSignal, call: Omit<ControlCall, 'failed'>): Promise<RemoteCallAnswer> {
    const { ledger, worker, bounds } = this.#deps;
    const deps = {
      ...{ ledger, worker, clock: this.#clock, slots: this.#slots },
      leaseMs: bounds?.leaseMs ?? LIMITS.remoteLeaseMs.value,
      callMs: bounds?.callMs ?? LIMITS.remoteCallMs.value,
      drainMs: bounds?.drainMs ?? LIMITS.remoteDrainMs.value,
    };
    const signal = AbortSignal.any([stop, this.#stopping.signal]);
    const answer = await superviseCall(deps, { ...call, failed: failedOutcome }, signal);
    return this.#told(answer);
  }

  async #told(answer: SupervisedAnswer): Promise<RemoteCallAnswer> {
    switch (answer.kind) {
      case 'settled':
        return this.#facts(answer.row);
      case 'refused':
        break;
      case 'under_way':
      case 'left_behind':
      case 'lost':
      case 'stopped':
        return { kind: 'wait', waitMs: AGAIN_MS, why: answer.kind };
      default:
        return answer satisfies never;
    }
    const { answer: refused } = answer;
    switch (refused.kind) {
      case 'busy':
      case 'not_due':
        return { kind: 'wait', waitMs: Math.max(refused.retryAfterMs, 1), why: refused.kind };
      case 'done':
      case 'ended':
        return this.#facts(refused.row);
      case 'superseded':
        return { kind: 'wait', waitMs: 0, why: 'superseded' };
      case 'unknown':
        return { kind: 'unknown' };
      default:
        return refused satisfies never;
    }
  }

  async #facts(row: RemoteTaskRow): Promise<RemoteCallAnswer> {
    const { phase, seen, failures, lastError, answered, pollDueAt, cancelSentAt } = row;
    const dueInMs = Math.max(0, pollDueAt - (await this.#deps.ledger.now()));
    const isEnded = phase === 'ended';
    const isCancelSent = cancelSentAt !== null;
    return { kind: 'facts', isEnded, seen, failures, lastError, answered, dueInMs, isCancelSent };
  }
}

function serverOf(servers: RemoteServers, { handle }: RemoteTaskRow): RemoteServer {
  const server = servers(handle.server);
  if (server === undefined) throw new Error(`This worker has no server ${handle.server}.`);
  return server;
}

function seenOf(status: RemoteStatus): RemoteSeen {
  const { kind } = status;
  const said = 'message' in status && status.message !== undefined ? status.message : null;
  const message = said === null ? {} : { message: keptText(String(said), MESSAGE_LENGTH_MAX) };
  if (kind === 'failed') return { kind, ...message, ...(status.code !== undefined && { code: status.code }) };
  if (kind !== 'input_required') return { kind, ...message };
  const size = JSON.stringify(status.requests).length;
  if (size <= LIMITS.remoteRequestsCharsMax.value) return { kind, ...message, requests: status.requests };
  return { kind, message: `It asks for more than can be shown here (${size} characters of JSON).` };
}

const within = (ms: number): number =>
  Math.min(
    Math.max(Number.isFinite(ms) ? ms : 0, LIMITS.remotePollMsMin.value),
    LIMITS.remotePollMsMax.value,
  );

function intervalMs({ handle }: RemoteTaskRow, status: RemoteStatus): number {
  const asked = 'pollIntervalMs' in status ? status.pollIntervalMs : undefined;
  return Math.ceil(within(asked ?? handle.pollIntervalMs));
}

function failedOutcome(error: unknown, { handle, failures }: RemoteTaskRow): RemoteCallOutcome {
  const { message, retryAfterMs } = classifyFailure(error);
  const grownMs = within(handle.pollIntervalMs) * 2 ** Math.min(failures, 20);
  const dueInMs = Math.ceil(
    retryAfterMs === undefined ? within(grownMs) : Math.min(retryAfterMs, LIMITS.retryIntervalMsMax.value),
  );
  return { kind: 'failed', message, dueInMs, alertAt: LIMITS.remoteFailuresMax.value };
}

/** By reference where it is large; what can not be kept is fetched again where it is needed. */
async function kept(
  ledger: Pick<Ledger, 'putPayload'>,
  tenant: string,
  status: RemoteStatus,
): Promise<StoredResult | null> {
  if (status.kind !== 'completed') return null;
  const text = canonicalText(status.result);
  const bytes = Buffer.byteLength(text);
  if (bytes <= LIMITS.resultInlineBytesMax.value)
    return { kind: 'inline', value: JSON.parse(text) as JsonObject };
  const sha256 = createHash('sha256').update(text).digest('hex');
  if (bytes > LIMITS.resultStoredBytesMax.value) return { kind: 'dropped', sha256, bytes };
  await ledger.putPayload(tenant, text);
  return { kind: 'reference', sha256, bytes };
}
