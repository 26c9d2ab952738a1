/**
 * The line to one upstream server: a process or an address, opened when it is needed, opened again when it was lost.
 *
 * Invariants:
 * 1. One handshake is under way at a time. A server that is lost at once is opened at a pace (pace.ts).
 * 2. A request that met a line from before, broken since, is made a second time and never a third: a server that restarted
 *    is met at the first request. A call only where it is proven that the server did not get it; a control request, which
 *    may be repeated, also where it was lost.
 * 3. Requests that were sent and have no answer end as lost when the line breaks.
 * 4. A silent server is given up after a control request has found it silent, and never under another request.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import { ActionFailure } from '../../contract/handlers.ts';
import { LIMITS } from '../../contract/limits.ts';
import { createConnector } from '../../mcp-client/connector.ts';
import type { LinkOrFailure } from '../../mcp-client/connector.ts';
import type { RequestOptions } from '../../mcp-client/dispatch.ts';
import { openLink } from '../../mcp-client/link.ts';
import type { Link, LinkOptions } from '../../mcp-client/link.ts';
import type { FailedRequest, Reply } from '../../mcp-client/reply.ts';
import type { RequestFailure } from '../../mcp-client/retry-matrix.ts';
import type { JsonObject } from '../../task/json.ts';
import type { ServerUrl, UpstreamAddress, UpstreamTimeouts } from './address.ts';
import { createHiddenLog, createLineLog } from './log.ts';
import type { UpstreamLog } from './log.ts';
import { createPace } from './pace.ts';
import { ProcessTransport } from './process-transport.ts';
import type { ServerCommand } from './server-process.ts';

export interface ConnectionOptions {
  identity: string;
  address: UpstreamAddress;
  /** Who we are to the server. */
  info: { name: string; version: string };
  timeouts: UpstreamTimeouts;
  log: UpstreamLog;
  clean: (text: string) => string;
  /** Told when a server says that its tools are others, and when it is met over a new line: it may be another one. */
  listChanged?: (why: 'told' | 'new line') => void;
}

/** What to send depends on the era of who gets it. */
export type RequestFor = (link: Link) => JsonObject | Promise<JsonObject>;

export interface Connection {
  /** Never rejects, unless `params` does. */
  call(params: RequestFor, options: RequestOptions): Promise<Reply>;
  /** One that may be repeated, within `controlMs`. */
  control(method: string, params: RequestFor, signal: AbortSignal): Promise<Reply>;
  close(): Promise<void>;
}

export function createConnection(options: ConnectionOptions): Connection {
  const { timeouts } = options;
  const connector = createConnector(paced(opener(options)));
  const used = new WeakSet<Link>();
  let underWay = 0;

  const once = async (method: string, params: RequestFor, request: RequestOptions) => {
    const met = await linkWithin(connector.link(), request.signal);
    // Whatever a handshake met: of this request, nothing was sent.
    if (met.kind !== 'link') return { reply: { ...met, failure: 'not_sent' as const }, wasUsed: false };
    const { link } = met;
    const wasUsed = used.has(link);
    used.add(link);
    const made = await params(link);
    if (request.signal.aborted) return { reply: CANCELLED_BEFORE, wasUsed: false };
    const reply = await link.request(method, made, request);
    if (reply.kind === 'failure') connector.suspect(link, false);
    return { reply, link, wasUsed };
  };
  const request = async (
    method: string,
    params: RequestFor,
    request: RequestOptions,
    mayRepeat: (failure: RequestFailure) => boolean,
  ) => {
    underWay += 1;
    try {
      const { reply, wasUsed, ...first } = await once(method, params, request);
      const isAgain = wasUsed && reply.kind === 'failure' && mayRepeat(reply.failure);
      return isAgain ? await once(method, params, request) : { reply, ...first };
    } finally {
      underWay -= 1;
    }
  };
  return {
    async call(params, sent) {
      const { reply } = await request('tools/call', params, sent, (failure) => failure === 'not_sent');
      return reply;
    },
    async control(method, params, signal) {
      const deadline = AbortSignal.timeout(timeouts.controlMs);
      let heardBefore = -1;
      const noting: RequestFor = (link) => {
        heardBefore = link.heard;
        return params(link);
      };
      const within = { signal: AbortSignal.any([signal, deadline]) };
      const isLost = (failure: RequestFailure) => failure === 'not_sent' || failure === 'lost';
      const { reply, link } = await request(method, noting, within, isLost);
      if (reply.kind !== 'cancelled' || !deadline.aborted || !link) return reply;
      if (underWay === 0) connector.suspect(link, link.heard === heardBefore);
      return NO_ANSWER;
    },
    close: () => connector.close(),
  };
}

const CANCELLED_BEFORE: FailedRequest = {
  kind: 'failure',
  failure: 'not_sent',
  message: 'cancelled before it was sent',
};
const NO_ANSWER: FailedRequest = {
  kind: 'failure',
  failure: 'lost',
  message: 'the server did not answer in time',
};

/** A handshake that nobody waits for any longer goes on: the next request finds it. */
async function linkWithin(opening: Promise<LinkOrFailure>, signal: AbortSignal): Promise<LinkOrFailure> {
  if (signal.aborted) return CANCELLED_BEFORE;
  let leave = (): void => undefined;
  const left = new Promise<LinkOrFailure>((resolve) => {
    leave = () => resolve(CANCELLED_BEFORE);
  });
  signal.addEventListener('abort', leave, { once: true });
  try {
    return await Promise.race([opening, left]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

/** A pause of up to so long is waited for, a longer one told. */
const PAUSE_MS = 1_000;

type Open = (signal: AbortSignal) => Promise<Link>;

function paced(open: Open): Open {
  const pace = createPace();
  return async (signal) => {
    for (;;) {
      const retryAfterMs = pace.next(performance.now());
      if (retryAfterMs === 0) return await open(signal);
      if (retryAfterMs > PAUSE_MS) {
        const message = 'the server ends or refuses again and again; it is tried anew in a while';
        throw new ActionFailure({ kind: 'rateLimited', code: 'rate_limited', message, retryAfterMs });
      }
      await delay(retryAfterMs, undefined, { signal });
    }
  };
}

/** Servers of 2025-11-25 on stdio may end at the question that 2026-07-28 begins with, or never answer it. */
function opener(options: ConnectionOptions): Open {
  const { address, info, timeouts, identity, log, listChanged } = options;
  const hidden = createHiddenLog(() => {
    const why = 'tools of this server have sensitive arguments or results: what it prints is not shown';
    log.info({ upstream: identity }, why);
  });
  const stderr = () => (address.hidesStderr === true ? hidden : stderrLog(options));
  const isProcess = 'command' in address;
  const openMs = timeouts.openMs;
  let [isLegacy, wasMet] = [false, false];
  let end = '';
  const linkOnce = (signal: AbortSignal): Promise<Link> => {
    end = '';
    return openLink({
      server: isProcess ? processOf(options, address, stderr(), (how) => (end = how)) : urlOf(address),
      ...{ info, openMs, isLegacy, answersInput: 'with tasks', hasTaskSession: false, signal },
      ...(isProcess && { probeMs: Math.ceil(openMs / 3) }),
      ...(listChanged && { onToolsChanged: () => listChanged('told') }),
    });
  };
  const open = async (signal: AbortSignal): Promise<Link> => {
    try {
      return await linkOnce(signal);
    } catch (error) {
      const isUntold = error instanceof SdkError && error.code === SdkErrorCode.EraNegotiationFailed;
      if (isLegacy || !isUntold || !isProcess) throw error;
      isLegacy = true;
      return await linkOnce(signal);
    }
  };
  return async (signal) => {
    try {
      const link = await open(signal);
      // Over HTTP the question costs one request, and the server may have learned its answer meanwhile.
      isLegacy = isProcess && link.era === 'legacy';
      if (wasMet) listChanged?.('new line');
      wasMet = true;
      return link;
    } catch (error) {
      isLegacy = false;
      throw end === '' ? error : new Error(`the process of the server ended ${end}`, { cause: error });
    }
  };
}

const urlOf = (address: ServerUrl): LinkOptions['server'] => ({
  ...address,
  answerBytesMax: LIMITS.upstreamMessageBytesMax.value,
});

const stderrLog = ({ identity, log, clean }: ConnectionOptions) =>
  createLineLog(clean, (line, leftOut) => {
    log.info({ upstream: identity, line, ...(leftOut > 0 && { leftOut }) }, 'upstream says');
  });

function processOf(
  { identity, timeouts, log }: ConnectionOptions,
  server: ServerCommand,
  onStderr: (chunk: string) => void,
  ended: (how: string) => void,
): LinkOptions['server'] {
  const onEnded = (how: string) => {
    ended(how);
    log.info({ upstream: identity, how }, 'upstream process ended');
  };
  return { open: () => new ProcessTransport({ server, closeMs: timeouts.closeMs, onStderr, onEnded }) };
}
