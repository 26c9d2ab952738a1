/**
 * The life of one request, whatever happens to it in whatever order (M4.1, M4.2, M5.2). Pure.
 *
 * ```
 * open ──idle, maximum, shutdown──> closing ──completion──> answered
 *   └──completion──> answered          └──leaving──> left
 *   └──leaving──> left
 * ```
 *
 * Invariants:
 * 1. `answered` and `left` are the ends, and no event changes them. A response goes out on the change to `answered` and
 *    at no other time: who has left gets none, and leaving afterwards is ignored.
 * 2. The maximum runs from the beginning, reset by nothing. The idle clock runs from the beginning or the last progress
 *    that was sent, reset by nothing else: neither a token nor a keepalive is progress.
 * 3. Progress goes out in `open` alone: none follows a clock, a response or a cancel.
 * 4. Who leaves once our own shutdown has begun was cut by us, and cancels nothing (M5.4).
 *
 * A question to a person ends the request that asks it; the one that brings the answer begins anew, so that a person's
 * time is in neither clock.
 */
export interface Clocks {
  idleMs: number;
  maximumMs: number;
}

/** Why a request answers with what is known just now, before its task has ended. */
export type Expiry = 'idle' | 'maximum' | 'shutdown';

export type RequestLife =
  | { kind: 'open'; openedAt: number; heardAt: number }
  /** Nothing is waited for any longer; the answer is being made. */
  | { kind: 'closing'; why: Expiry }
  | { kind: 'answered'; after: Expiry | null }
  /** The caller waits no longer. `isCancel`: and said so, as its transport says it (M5.1). */
  | { kind: 'left'; isCancel: boolean };

export type RequestEnd = Extract<RequestLife, { kind: 'answered' | 'left' }>;

export type RequestEvent =
  /** There is progress to send. */
  | { kind: 'progress' }
  /** The response is there, be it a result or an error. */
  | { kind: 'completion' }
  /** `isCancel`: false for a disconnect that is no cancel, as on legacy HTTP. */
  | { kind: 'leaving'; isCancel: boolean }
  | { kind: 'shutdown' }
  | { kind: 'time' };

export const opened = (now: number): RequestLife => ({ kind: 'open', openedAt: now, heardAt: now });

export const isOver = (life: RequestLife): life is RequestEnd =>
  life.kind === 'answered' || life.kind === 'left';

/** What becomes of a request when `event` happens at `now`. */
export function lifeAfter(
  before: RequestLife,
  event: RequestEvent,
  now: number,
  clocks: Clocks,
): RequestLife {
  const life = expired(before, now, clocks);
  if (isOver(life)) return life;
  switch (event.kind) {
    case 'time':
      return life;
    case 'progress':
      return life.kind === 'open' ? { ...life, heardAt: now } : life;
    case 'shutdown':
      return { kind: 'closing', why: 'shutdown' };
    case 'completion':
      return { kind: 'answered', after: life.kind === 'closing' ? life.why : null };
    case 'leaving': {
      const isCut = life.kind === 'closing' && life.why === 'shutdown';
      return { kind: 'left', isCancel: event.isCancel && !isCut };
    }
    default:
      return event satisfies never;
  }
}

/** When the next clock runs out; null where none runs. */
export function dueAt(life: RequestLife, { idleMs, maximumMs }: Clocks): number | null {
  return life.kind === 'open' ? Math.min(life.openedAt + maximumMs, life.heardAt + idleMs) : null;
}

/** A clock that ran out counts from its own time, whenever it is looked at. */
function expired(life: RequestLife, now: number, clocks: Clocks): RequestLife {
  const due = dueAt(life, clocks);
  if (life.kind !== 'open' || due === null || now < due) return life;
  return { kind: 'closing', why: due === life.openedAt + clocks.maximumMs ? 'maximum' : 'idle' };
}
