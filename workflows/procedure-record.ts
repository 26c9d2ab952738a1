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
import type { Json } from '../src/task/json.ts';
import { PROCEDURE_LIMITS } from '../src/task/procedure-limits.ts';
import { isStopped } from '../src/task/procedure-state.ts';
import type { ProcedureState } from '../src/task/procedure-state.ts';
import { isHistoryFull, isHistoryLong } from './history.ts';
import { bytesOf } from './json-bytes.ts';
import type { ProcedureStep, StepSnapshot } from './procedure-step.ts';

interface Recorded {
  input: Json;
  state: ProcedureState;
  steps: ReadonlyMap<string, ProcedureStep>;
  carried(): Carried;
}

interface Carried {
  steps: ProcedureStep[];
  state: ProcedureState;
}

/** Undoing a step writes its input, and what came of it, once more. */
const UNDO_WRITES = 2;

/** Runs that refused a large record at its boundary go on as they began. */
export const isRecordBounded = (): boolean => patched('large-records');

export class ProcedureRecord {
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
    return isStopped(this.#of.state) && !this.#fits(this.#wholeBytes(this.#of.carried()));
  }

  #isCarriable(): boolean {
    const { state } = this.#of;
    if (!isStopped(state) && this.#hasRefused) return false;
    const measure = isStopped(state) ? this.#slimBytes : this.#wholeBytes;
    if (this.#fits(measure({ state, steps: [...this.#of.steps.values()] }))) return true;
    // Runs that counted what is left behind go on as they began.
    return this.#fits(measure(this.#of.carried())) && patched('left-steps-uncounted');
  }

  /** By itself and beside all else that crosses. Runs whose engine took more in all go on as they began. */
  #fits(bytes: number): boolean {
    if (bytes > PROCEDURE_LIMITS.carriedBytesMax) return false;
    const { input, state } = this.#of;
    const result = state.phase.kind === 'returned' ? state.phase.result : null;
    const whole = bytes + bytesOf(input) + bytesOf(result) + bytesOf(state.plan);
    return whole <= PROCEDURE_LIMITS.bytesAtOnceMax || !patched('input-carried');
  }

  readonly #wholeBytes = ({ state, steps }: Carried): number =>
    this.#bytes([state.past, ...state.items, ...steps.flatMap((step) => [step.state, step.run.input])]);

  readonly #slimBytes = ({ state, steps }: Carried): number =>
    this.#bytes([state.past, ...steps.flatMap((step) => [slimState(step.state), step.run.input])]);

  #committedBytes(): number {
    const { state, steps } = this.#of;
    return this.#bytes(state.committed.flatMap((name) => steps.get(name)?.run.input ?? []));
  }

  #bytes(parts: readonly unknown[]): number {
    return parts.reduce<number>((sum, part) => sum + bytesOf(part), 0);
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
