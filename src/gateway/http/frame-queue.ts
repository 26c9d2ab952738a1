/**
 * What waits for one reader of an SSE response (M6.1). Pure: no stream, no clock.
 *
 * Invariants, after each push:
 * 1. At most `framesMax` frames and `bytesMax` bytes wait. A needed frame that is larger by itself waits alone.
 * 2. Frames are taken in the order they came in.
 * 3. A needed frame is never dropped: one that finds room only in place of another is refused, and with it all later ones.
 * 4. Over a bound, neighbours about one subject become the latest of them, which loses nothing a reader could still use;
 *    then the oldest that are not needed are dropped.
 * 5. Once something was dropped, the next message taken and every response say how many were.
 * 6. A comment waits only where nothing else does, and is nobody's loss.
 * 7. What a frame is (`role`) is asked only while another waits or once one was dropped: a reader that keeps up costs no
 *    parsing.
 */
export type FrameRole =
  /** Ends a request. Needed. */
  | { kind: 'response' }
  /** The other side acts on it: a request, an acknowledgement. */
  | { kind: 'needed' }
  /** Told once more by whatever comes later. `subject`: what it tells about, if that is known. */
  | { kind: 'replaceable'; subject: string | null }
  | { kind: 'comment' };

export interface Frame {
  readonly bytes: number;
  readonly role: FrameRole;
}

export interface Taken<F> {
  frame: F;
  /** How many messages of this stream were dropped so far, where this frame must say so; else null. */
  dropped: number | null;
}

export interface QueueBounds {
  bytesMax: number;
  framesMax: number;
}

export class FrameQueue<F extends Frame> {
  readonly #bounds: QueueBounds;
  #waiting: F[] = [];
  #bytes = 0;
  #dropped = 0;
  /** Of `#dropped`, what the reader was told of. */
  #told = 0;
  #isFull = false;

  constructor(bounds: QueueBounds) {
    this.#bounds = bounds;
  }

  get size(): number {
    return this.#waiting.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** `refused`: the frame is needed, and keeping it would drop another that is. */
  push(frame: F): 'taken' | 'refused' {
    if (this.#isFull) return 'refused';
    if (this.size > 0) {
      if (frame.role.kind === 'comment') return 'taken';
      if (this.#waiting[0]?.role.kind === 'comment') this.#removeAt(0);
    }
    this.#waiting.push(frame);
    this.#bytes += frame.bytes;
    if (this.#isOver()) this.#coalesce();
    while (this.#isOver()) {
      const oldest = this.#waiting.findIndex(({ role }) => role.kind === 'replaceable');
      if (oldest === -1) break;
      this.#removeAt(oldest);
      this.#dropped += 1;
    }
    if (!this.#isOver()) return 'taken';
    this.#removeAt(this.size - 1);
    this.#isFull = true;
    return 'refused';
  }

  take(): Taken<F> | null {
    const frame = this.#waiting[0];
    if (frame === undefined) return null;
    this.#removeAt(0);
    if (this.#dropped === 0) return { frame, dropped: null };
    const { kind } = frame.role;
    const mustSay = kind === 'response' || this.#dropped > this.#told;
    if (!mustSay || kind === 'comment') return { frame, dropped: null };
    this.#told = this.#dropped;
    return { frame, dropped: this.#dropped };
  }

  /** Frees everything. */
  clear(): void {
    this.#waiting = [];
    this.#bytes = 0;
  }

  #isOver(): boolean {
    const { bytesMax, framesMax } = this.#bounds;
    if (this.size === 1) return this.#bytes > bytesMax && this.#waiting[0]?.role.kind === 'replaceable';
    return this.size > framesMax || this.#bytes > bytesMax;
  }

  #coalesce(): void {
    const subjectAt = (index: number): string | null => {
      const role = this.#waiting[index]?.role;
      return role?.kind === 'replaceable' ? role.subject : null;
    };
    this.#waiting = this.#waiting.filter((frame, index) => {
      const subject = subjectAt(index);
      const isOutdated = subject !== null && subject === subjectAt(index + 1);
      if (isOutdated) this.#bytes -= frame.bytes;
      return !isOutdated;
    });
  }

  #removeAt(index: number): void {
    const [removed] = this.#waiting.splice(index, 1);
    this.#bytes -= removed?.bytes ?? 0;
  }
}
