/** What a procedure's code holds in its hands: asks of it become items on record (`holdfast/procedure`). */
import { patched } from '@temporalio/workflow';
import { StepFailed } from '../src/procedure/step-failed.ts';
import type { ProcedureCode, ProcedureHandle } from '../src/procedure/procedure.ts';
import { APPROVAL_ACTION } from '../src/task/approval.ts';
import { durationMs } from '../src/task/duration.ts';
import type { Json, JsonObject } from '../src/task/json.ts';
import type { TaskError, TerminalCause } from '../src/task/outcome.ts';
import type { ItemOutcome } from '../src/task/procedure-event.ts';
import { PROCEDURE_LIMITS } from '../src/task/procedure-limits.ts';
import { isStopped } from '../src/task/procedure-state.ts';
import type { Item } from '../src/task/procedure-state.ts';
import { bytesOf } from './json-bytes.ts';
import type { ProcedureRun } from './procedure-run.ts';

type AnyHandle = ProcedureHandle<readonly never[]>;
export type AnyCode = ProcedureCode<readonly never[], JsonObject>;

/** The code was left where it stands: nothing it waits for is ever told. */
const never = (): Promise<never> => new Promise<never>(() => undefined);

/** `prefix`: of the children it runs in; `restart`: for the procedure itself alone. */
export function handleFor(
  run: ProcedureRun,
  prefix: string,
  restart: (input: JsonObject) => void,
): AnyHandle {
  const step = (
    stepId: string,
    action: string,
    args: unknown,
    more: { decision?: true } = {},
  ): Promise<unknown> => {
    if (isStopped(run.state)) return never();
    const problem = misnamed(stepId, prefix);
    if (problem !== null) return Promise.reject(problem);
    const given = plain(args);
    const fingerprint = fingerprintOf(given);
    const { step: name, known } = run.items.ask(prefix + stepId);
    const excess = known ? null : (tooMany(run) ?? tooLarge(name, given));
    if (excess !== null) return Promise.reject(excess);
    if (known) mustBe(run, known, { kind: 'step', action, fingerprint });
    else run.begin(name, { action, args: given, ...more }, fingerprint);
    return run.items.wait(name);
  };
  const handle = {
    taskId: run.state.taskId,
    step: (stepId: string, action: string, args: unknown) => step(stepId, action, args),
    decide: (stepId: string, action: string, args: unknown) => step(stepId, action, args, { decision: true }),
    approve: (id: string, { view, ...policy }: { view: JsonObject }) =>
      step(id, APPROVAL_ACTION, { view, policy }),
    child: (id: string, code: AnyCode, input: JsonObject) => child(run, prefix, id, code, input),
    sleep: (duration: unknown) => sleep(run, prefix, duration),
    restart: (input: JsonObject) => {
      if (prefix !== '') throw new TypeError('only the procedure itself restarts, not a child');
      const next = plain(input);
      const excess = isStopped(run.state) ? null : tooLarge('restart', next);
      if (excess !== null) return Promise.reject(excess);
      restart(next);
      return never();
    },
  };
  return Object.freeze(handle) as unknown as AnyHandle;
}

function sleep(run: ProcedureRun, prefix: string, duration: unknown): Promise<unknown> {
  if (isStopped(run.state)) return never();
  const ms = durationMs(duration);
  if (ms === null)
    return Promise.reject(
      new TypeError(`p.sleep takes '30s', '24h' or milliseconds, not ${String(duration)}`),
    );
  const { step, known } = run.items.ask(`${prefix}sleep`);
  const excess = known ? null : tooMany(run);
  if (excess !== null) return Promise.reject(excess);
  if (known) mustBe(run, known, { kind: 'sleep', action: '', fingerprint: '' });
  else run.sleep(step, ms);
  return run.items.wait(step);
}

/** A procedure within this one: run anew with it, and undone by itself when it fails (S6.3). */
function child(
  run: ProcedureRun,
  prefix: string,
  childId: string,
  code: AnyCode,
  given: JsonObject,
): Promise<unknown> {
  if (isStopped(run.state)) return never();
  const problem = misnamed(childId, prefix);
  if (problem !== null) return Promise.reject(problem);
  const input = plain(given);
  const fingerprint = fingerprintOf(input);
  const { step, known } = run.items.ask(prefix + childId);
  const excess = known ? null : tooMany(run);
  if (excess !== null) return Promise.reject(excess);
  if (known) mustBe(run, known, { kind: 'child', action: code.procedure, fingerprint });
  else run.journal.append({ type: 'child_started', data: { step, procedure: code.procedure, fingerprint } });
  const isOnRecord = known !== undefined && known.order !== null;
  carryOut(run, `${step}/`, code, input)
    .then((outcome) => {
      if (outcome === null || isOnRecord || isStopped(run.state)) return;
      run.journal.append({ type: 'child_ended', data: { step, outcome } });
      run.items.tell();
    })
    .catch(run.fail);
  return run.items.wait(step);
}

/** Null: the run continues as new before this is over. */
async function carryOut(
  run: ProcedureRun,
  prefix: string,
  code: AnyCode,
  input: JsonObject,
): Promise<ItemOutcome | null> {
  try {
    const value = plainValue(
      await code.run(
        handleFor(run, prefix, () => undefined),
        input,
      ),
    );
    if ((await run.settled(prefix)) === 'rest') return null;
    return { ok: true, result: { kind: 'inline', value } };
  } catch (error) {
    if ((await run.undoing.part(prefix)) === 'rest') return null;
    return { ok: false, ...failureOf(error) };
  }
}

/** What a procedure's code threw, as a task's end has it. */
export function failureOf(error: unknown): { cause: TerminalCause; error: TaskError } {
  if (error instanceof StepFailed) return { cause: error.cause, error: error.toTaskError() };
  const message = (error instanceof Error ? error.message : String(error)).slice(0, 1_000);
  return { cause: 'procedure_failed', error: { code: 'procedure_failed', message } };
}

/** The code is not what it was when this was recorded. */
function mustBe(run: ProcedureRun, known: Item, asked: Pick<Item, 'kind' | 'action' | 'fingerprint'>): void {
  const isSame =
    known.kind === asked.kind && known.action === asked.action && known.fingerprint === asked.fingerprint;
  if (isSame) return;
  run.fail(
    new ChangedCode(
      `The procedure asked for ${asked.kind} ${known.step} otherwise than on record: its code has changed, or it depends on a clock or chance of its own.`,
    ),
  );
}

/** Fails the workflow task: it is tried again by whoever has the code the task was begun with. */
export class ChangedCode extends Error {
  override readonly name = 'ChangedCode';
}

function misnamed(stepId: unknown, prefix: string): TypeError | null {
  const { stepIdLengthMax, stepNameLengthMax } = PROCEDURE_LIMITS;
  const isName = typeof stepId === 'string' && /^[A-Za-z0-9_.-]+$/.test(stepId);
  const length = isName ? stepId.length : 0;
  if (isName && length <= stepIdLengthMax && prefix.length + length <= stepNameLengthMax - 8) return null;
  return new TypeError(
    `a stepId is 1 to ${stepIdLengthMax} of A-Z a-z 0-9 _ . - (with its children's at most ${stepNameLengthMax}), not ${JSON.stringify(stepId)}`,
  );
}

/** What is on record was begun, and is told again whatever has come after it. */
function tooMany(run: ProcedureRun): StepFailed | null {
  const { itemsMax } = PROCEDURE_LIMITS;
  if (run.isFull())
    return new StepFailed('procedure', 'procedure_failed', {
      code: 'procedure_too_large',
      message:
        'What the procedure has on record is more than a history takes: give its steps less, or restart more often (`return p.restart(input)`). This step was not begun.',
    });
  if (run.state.items.length < itemsMax) return null;
  return new StepFailed('procedure', 'procedure_failed', {
    code: 'procedure_too_long',
    message: `A procedure has at most ${itemsMax} steps, sleeps and children until it restarts: \`return p.restart(input)\` in loops without end.`,
  });
}

/** Handed to the engine it would be refused for ever. Runs whose engine took more go on as they began. */
export function tooLarge(step: string, given: Json): StepFailed | null {
  const { handedBytesMax } = PROCEDURE_LIMITS;
  const bytes = bytesOf(given);
  if (bytes <= handedBytesMax || !patched('handed-bytes')) return null;
  return new StepFailed(step, 'invalid_arguments', {
    code: 'payload_too_large',
    message: `This is ${bytes} bytes as JSON; at most ${handedBytesMax} are taken. Nothing of it was done. Pass a reference instead.`,
    details: { bytes, limit: handedBytesMax },
  });
}

function plain(value: unknown): JsonObject {
  return plainValue(value) as JsonObject;
}

/** A copy that nobody else holds; throws on what is no JSON (a cycle, a BigInt). */
export function plainValue(value: unknown): Json {
  return value === undefined ? null : (JSON.parse(JSON.stringify(value)) as Json);
}

/** Read once: each use of a global costs far more in the workflow's sandbox than what is done with it here. */
const { imul } = Math;

/** Tells calls of one procedure apart: FNV-1a over the JSON, 2 × 32 bits, with its length. Proves nothing to anybody. */
function fingerprintOf(value: Json): string {
  const text = JSON.stringify(value);
  let [low, high] = [0x811c9dc5, 0x01000193];
  for (let index = 0; index < text.length; index += 1) {
    low = imul(low ^ text.charCodeAt(index), 0x01000193) >>> 0;
    high = imul(high ^ text.charCodeAt(index), 0x85ebca6b) >>> 0;
  }
  return `${text.length}.${low.toString(16)}${high.toString(16)}`;
}
