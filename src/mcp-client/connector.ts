/**
 * Keeps one link to the server, opened when it is needed and opened again when it was lost.
 *
 * Invariants: one handshake is under way at a time, however many calls wait for it; a link that was dropped is never
 * given out again, and is closed once nothing is under way over it; after `close` none is open, and no handshake is under way.
 */
import type { Link } from './link.ts';
import { httpErrorOf, redirectWords, replyOfSendError } from './reply.ts';
import type { FailedRequest } from './reply.ts';

export type LinkOrFailure = { kind: 'link'; link: Link } | FailedRequest;

export interface Connector {
  /** Never rejects. A handshake that fails has sent nothing of any call. */
  link(): Promise<LinkOrFailure>;
  /**
   * After a request that was lost or not sent: a link that is broken is given up. `isSilent`: nothing at all was heard over
   * it meanwhile. A pipe or a session that others may still use is never cut under them.
   */
  suspect(link: Link, isSilent: boolean): void;
  close(): Promise<void>;
}

/** `open` ends early where its signal aborts. */
export function createConnector(open: (signal: AbortSignal) => Promise<Link>): Connector {
  let current: Promise<LinkOrFailure> | null = null;
  let live: Link | null = null;
  const closing = new AbortController();
  /** Sessions that are not given out any more, and that others may still use. */
  const retired = new Set<Link>();

  const give = async (): Promise<LinkOrFailure> => {
    try {
      live = await open(closing.signal);
      if (!closing.signal.aborted) return { kind: 'link', link: live };
      await live.close();
      return CLOSED;
    } catch (error) {
      if (closing.signal.aborted) return CLOSED;
      current = null;
      return failureOfOpening(error);
    }
  };
  const drop = (link: Link): void => {
    if (link !== live) return;
    current = null;
    live = null;
    link.close().catch(() => undefined); // it is broken already
  };
  const closeIdle = (): void => {
    for (const link of [...retired].filter(({ isIdle }) => isIdle)) {
      retired.delete(link);
      link.close().catch(() => undefined); // nobody is there to hear it
    }
  };
  return {
    async link() {
      if (closing.signal.aborted) return CLOSED;
      closeIdle();
      if (live?.isOpen === false) drop(live);
      return (current ??= give());
    },
    suspect(link, isSilent) {
      if (!link.isOpen || (link.between === 'pipe' && isSilent)) drop(link);
      else if (link.between === 'session' && link === live) {
        current = live = null;
        retired.add(link);
      }
    },
    async close() {
      closing.abort();
      const links = [...retired, ...(live === null ? [] : [live])];
      retired.clear();
      current = null;
      live = null;
      await Promise.all(links.map((link) => link.close()));
    },
  };
}

const CLOSED: FailedRequest = { kind: 'failure', failure: 'refused', message: 'this client is closed' };

const CAUSES_MAX = 4;

/** The server's own "later" or "no", wherever the handshake's error carries it; else nothing but "not sent". */
function failureOfOpening(error: unknown): FailedRequest {
  let cause: unknown = error;
  for (let depth = 0; cause instanceof Error && depth < CAUSES_MAX; depth += 1, cause = cause.cause) {
    const status = httpErrorOf(cause)?.status;
    if (status === 401 || status === 403)
      return { kind: 'failure', failure: 'refused', message: cause.message };
    if (status !== undefined && status >= 300 && status < 400)
      return { kind: 'failure', failure: 'not_sent', message: redirectWords(status) };
    const reply = replyOfSendError(cause);
    if (reply.kind === 'failure' && reply.failure === 'told_later') return reply;
  }
  return {
    kind: 'failure',
    failure: 'not_sent',
    message: error instanceof Error ? error.message : String(error),
  };
}
