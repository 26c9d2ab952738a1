/**
 * The gateway's limits and time spans. All are bounds on one request, one connection or one server spoken to; those on
 * arguments, keys and results are in limits.ts. docs/limits.md is generated from both tables; code takes its numbers from
 * here, and `defineConfig` the names that may be set.
 */
import { LIMITS } from './limits.ts';

interface GatewayLimit {
  value: number;
  unit:
    | 'bytes'
    | 'calls'
    | 'characters'
    | 'frames'
    | 'levels'
    | 'listens'
    | 'ms'
    | 'sessions'
    | 'tasks'
    | 'tokens';
  what: string;
}

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** Those that can be set, each with its default (src/gateway/limits.ts). */
export const GATEWAY_LIMITS = {
  messageBytesMax: {
    value: 4 * 1024 * 1024,
    unit: 'bytes',
    what: 'One HTTP request body, one stdio message. Beyond: HTTP 413 `payload_too_large`, on stdio the same as a JSON-RPC error.',
  },
  messageDepthMax: {
    value: LIMITS.nestingDepthMax.value + 10,
    unit: 'levels',
    what: 'Arrays and objects inside one another in a whole message; above the arguments’ own bound by what the envelope needs.',
  },
  callsPerSecondMax: {
    value: 1_000,
    unit: 'calls',
    what: 'M7.2: calls of one principal within a second, in one gateway. Beyond: `too_many_calls`, over HTTP 429 with `Retry-After`.',
  },
  openCallsMax: {
    value: 1_000,
    unit: 'calls',
    what: 'M7.2: calls of one principal that are open at one time, in one gateway; listens have a bound of their own. Beyond: the same.',
  },
  inlineWaitMs: {
    value: 250,
    unit: 'ms',
    what: 'M2.1: how long a call of a Tasks client waits for the end before it answers with the task’s handle. 0: not at all.',
  },
  blockingMs: {
    value: 45_000,
    unit: 'ms',
    what: 'M3.1: how long a call of any other client blocks; below the 60 s after which the SDK’s clients give up.',
  },
  idleMs: {
    value: 45_000,
    unit: 'ms',
    what: 'M4.1: how long a call blocks while no progress is sent to its caller. Tells on calls where `blockingMs` is longer than this.',
  },
  abandonMs: {
    value: 30_000,
    unit: 'ms',
    what: 'M5.3: how long nobody must have waited for a task of a tool with `onAbandon: cancel` before it is asked to cancel.',
  },
  progressIntervalMs: {
    value: 100,
    unit: 'ms',
    what: 'M4.2: least time between two progress notifications of one token.',
  },
  keepAliveMs: {
    value: 15_000,
    unit: 'ms',
    what: 'M6.2: an SSE comment at least this often while a response is open.',
  },
  streamBytesMax: {
    value: 1024 * 1024,
    unit: 'bytes',
    what: 'M6.1: what waits for one reader of an SSE response. Beyond: progress is coalesced, then dropped and the stream marked; a response never.',
  },
  streamFramesMax: {
    value: 256,
    unit: 'frames',
    what: 'M6.1: the same, counted in messages.',
  },
  stalledReaderMs: {
    value: 30_000,
    unit: 'ms',
    what: 'M6.1: how long a reader of an SSE response may take nothing while something waits for it. Beyond: it is disconnected.',
  },
  legacySessionsMax: {
    value: 32,
    unit: 'sessions',
    what: 'Sessions a principal has at one gateway (clients of 2025-11-25 and older over HTTP). One more ends the one idle longest. 0: none; such clients are then served without elicitation and cancel, by any of several gateways.',
  },
  legacySessionIdleMs: {
    value: 30 * 60 * 1000,
    unit: 'ms',
    what: 'A session in which nothing was open for so long is ended; its client gets 404 and initializes anew.',
  },
  listenTaskIdsMax: {
    value: 100,
    unit: 'tasks',
    what: 'M2.5: tasks that one `subscriptions/listen` names. Beyond: invalid params, -32602.',
  },
  listensMax: {
    value: 16,
    unit: 'listens',
    what: 'M7.2: open listens of one principal in one gateway. Beyond: `too_many_listens`.',
  },
  listenPollMs: {
    value: 5_000,
    unit: 'ms',
    what: 'M2.5: how often a task that somebody listens to is read without a hint, once for all who listen to it.',
  },
  drainMs: {
    value: 2_000,
    unit: 'ms',
    what: 'How long a shutdown lets open calls hand over their task before connections are closed.',
  },
} as const satisfies Record<string, GatewayLimit>;

/** Those that are as they are. */
export const FIXED_GATEWAY_LIMITS = {
  requestArrivesMs: {
    value: 30_000,
    unit: 'ms',
    what: 'How long an HTTP request takes to arrive whole. Beyond: 408, and the connection is closed. A response may stay open.',
  },
  answerFlushMs: {
    value: 500,
    unit: 'ms',
    what: 'How long a shutdown waits for a slow reader of the last answer. Beyond: it is cut off.',
  },
  questionMs: {
    value: DAY_MS,
    unit: 'ms',
    what: 'How long one question stays before a person on a connection of 2025-11-25; the client’s own patience with the call ends sooner or later.',
  },
  requestStateMs: {
    value: 30 * DAY_MS,
    unit: 'ms',
    what: 'M3.1: how long a `requestState` is taken back. Beyond: it is refused as invalid params, and the call is made anew with its key.',
  },
  tokenLengthMax: {
    value: 8_192,
    unit: 'characters',
    what: 'A bearer token of an authorization server. Beyond: 401.',
  },
  tokensMax: { value: 1_000, unit: 'tokens', what: '`auth.tokens`. Beyond: `invalid_configuration`.' },
  keySetKeptMs: {
    value: 10 * MINUTE_MS,
    unit: 'ms',
    what: 'How long the authorization server’s keys are used before they are fetched again: a key it withdraws is taken as long.',
  },
  keySetCooldownMs: {
    value: 5_000,
    unit: 'ms',
    what: 'Least time between two fetches of keys because of a token that names an unknown one. Meanwhile: 401.',
  },
  keySetFetchMs: {
    value: 5_000,
    unit: 'ms',
    what: 'How long one fetch of keys takes. Beyond: `auth_unavailable`.',
  },
  keySetRetryMs: {
    value: 1_000,
    unit: 'ms',
    what: 'How long a server of keys that failed is left alone. Meanwhile: `auth_unavailable`.',
  },
  retryOpenCallsMs: {
    value: 1_000,
    unit: 'ms',
    what: '`Retry-After` of a call beyond `openCallsMax`: when an open one ends, nobody knows.',
  },
  hintReadMs: {
    value: 50,
    unit: 'ms',
    what: 'M2.5: least time between two reads of a task that hints lead to; hints come in bursts.',
  },
  listenReadsMax: {
    value: 32,
    unit: 'tasks',
    what: 'M2.5: tasks that are read at one time for all who listen in one gateway; the others wait in line.',
  },
  waitingCountedMs: {
    value: 10_000,
    unit: 'ms',
    what: 'How old the numbers of waiting tasks in `/metrics` may be; they are counted by the engine when read.',
  },
} as const satisfies Record<string, GatewayLimit>;

export type GatewayLimitName = keyof typeof GATEWAY_LIMITS;
export const GATEWAY_LIMIT_NAMES = Object.keys(GATEWAY_LIMITS) as GatewayLimitName[];
