/**
 * What a procedure carries over continue-as-new, and whether the engine takes so much in one payload (S3.6, field case 14).
 *
 * Invariants:
 * 1. A record that is too large is never handed to the engine, which would refuse it for ever: the run goes on with a long
 *    history instead.
 * 2. When that is full the next step is refused before it begins, and from then on every one: the code may have gone
 *    another way upon the first.
 * 3. Of code that is stopped nothing is told again; without its results the rest is small enough to be undone.
 */
import { patched } from '@temporalio/workflow';
import { PROCEDURE_LIMITS } from '../src/task/procedure-limits.ts';
import { isStopped } from '../src/task/procedure-state.ts';
import type { ProcedureState } from '../src/task/procedure-state.ts';
import { isHistoryFull, isHistoryLong } from './history.ts';
import type { ProcedureStep, StepSnapshot } from './procedure-step.ts';

interface Recorded {
  state: ProcedureState;
  steps: ReadonlyMap<string, ProcedureStep>;
}

/** Undoing a step writes its input, and what came of it, once more. */
const UNDO_WRITES = 2;

/** Runs that refused a large record at its boundary go on as they began. */
export const isRecordBounded = (): boolean => patched('large-records');

export class ProcedureRecord {
  readonly #sizes = new WeakMap<object, number>();
  readonly #of: Recorded;
  #hasRefused = false;

  constructor(of: Recorded) {
    this.#of = of;
  }

  /** Whether the run must continue as new, once nothing is under way. */
  readonly isDue = (): boolean => isHistoryLong() && (this.#isCarriable() || !isRecordBounded());

  /** Whether nothing more may begin. */
  isFull(): boolean {
    if (!isHistoryLong()) return false;
    this.#hasRefused ||= isHistoryFull(UNDO_WRITES * this.#committedBytes()) && isRecordBounded();
    return this.#hasRefused;
  }

  /** Whether results must be left behind. */
  isSlim(): boolean {
    return isStopped(this.#of.state) && this.#wholeBytes() > PROCEDURE_LIMITS.carriedBytesMax;
  }

  #isCarriable(): boolean {
    if (isStopped(this.#of.state)) return this.#slimBytes() <= PROCEDURE_LIMITS.carriedBytesMax;
    return !this.#hasRefused && this.#wholeBytes() <= PROCEDURE_LIMITS.carriedBytesMax;
  }

  #wholeBytes(): number {
    const { state, steps } = this.#of;
    return this.#bytes([
      ...state.items,
      ...[...steps.values()].flatMap((step) => [step.state, step.run.input]),
    ]);
  }

  #slimBytes(): number {
    return this.#bytes(
      [...this.#of.steps.values()].flatMap((step) => [slimState(step.state), step.run.input]),
    );
  }

  #committedBytes(): number {
    const { state, steps } = this.#of;
    return this.#bytes(state.committed.flatMap((name) => steps.get(name)?.run.input ?? []));
  }

  #bytes(parts: readonly unknown[]): number {
    return parts.reduce<number>((sum, part) => sum + this.#bytesOf(part), 0);
  }

  #bytesOf(part: unknown): number {
    if (typeof part !== 'object' || part === null) return bytesIn(part);
    const known = this.#sizes.get(part);
    if (known !== undefined) return known;
    const bytes = bytesIn(part);
    this.#sizes.set(part, bytes);
    return bytes;
  }
}

/** Without what was only for the code. */
export function slimItems(state: ProcedureState): ProcedureState {
  const items = state.items.map((item) =>
    item.outcome?.ok === true ? { ...item, outcome: { ok: true as const, result: NOTHING } } : item,
  );
  return { ...state, items };
}

export function slimStep(step: StepSnapshot): StepSnapshot {
  return { ...step, journal: { ...step.journal, state: slimState(step.journal.state) } };
}

const NOTHING = { kind: 'inline', value: null } as const;

function slimState(state: StepSnapshot['journal']['state']): StepSnapshot['journal']['state'] {
  const { phase } = state;
  return phase.kind === 'finished' && phase.result !== null
    ? { ...state, phase: { ...phase, result: NOTHING } }
    : state;
}

/** As JSON in UTF-8. */
function bytesIn(value: unknown): number {
  const text = JSON.stringify(value) ?? '';
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    // Each half of a surrogate pair is two of its four bytes.
    if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return bytes;
}
