/**
 * Workflow `procedure`: one durable run of a user's procedure (S6.3). Started with a frozen plan by HoldfastClient, or
 * bare by any Temporal client, as workflow `action` is.
 *
 * The user's code is run from the top over what is on record whenever the run continues as new; what it was told before
 * it is told again in the same order, and nothing is done twice (S3.6). It is bundled with this file (worker/workflow-source.ts).
 */
import {
  CancellationScope,
  condition,
  continueAsNew,
  patched,
  sleep,
  workflowInfo,
} from '@temporalio/workflow';
import type { BareStart } from '../src/task/activity-api.ts';
import type { Json, JsonObject } from '../src/task/json.ts';
import type { TaskOutcome } from '../src/task/outcome.ts';
import type { Plan } from '../src/task/plan.ts';
import { PROCEDURE_LIMITS } from '../src/task/procedure-limits.ts';
import { isStopped } from '../src/task/procedure-state.ts';
import type { TaskState } from '../src/task/state.ts';
import { refuseMisuse } from './argument.ts';
import { ChangedCode, failureOf, handleFor, plainValue, tooLarge } from './procedure-handle.ts';
import type { AnyCode } from './procedure-handle.ts';
import { answerProcedureMessages, requestCancel } from './procedure-messages.ts';
import { ProcedureRun } from './procedure-run.ts';
import type { ProcedureSnapshot } from './procedure-run.ts';
import { isRecordBounded } from './procedure-record.ts';
import { watchCancellation } from './requests.ts';
import { ledgerActivities } from './steps.ts';

/** The workflow's one argument. `carried` is set by its own continue-as-new alone. */
export type ProcedureArgument =
  | { v: 1; plan: Plan; input: Json; ordinal: number; carried?: ProcedureSnapshot }
  | (BareStart & { carried?: ProcedureSnapshot });

const PLANNING_RETRY_MS = 1_000;

/** The workflow over what a user's file exports. */
export function procedureWorkflow(exported: Readonly<Record<string, unknown>>) {
  return async function procedure(argument: ProcedureArgument): Promise<TaskOutcome> {
    refuseMisuse(argument);
    const run = new ProcedureRun(argument.carried ?? startOf(argument));
    answerProcedureMessages(run);
    watchCancellation((message) => requestCancel(run, message));
    return CancellationScope.nonCancellable(() => new Pass(run, argument, exported).live());
  };
}

function startOf(argument: ProcedureArgument) {
  const planned = 'plan' in argument ? argument : null;
  return {
    type: 'procedure_started',
    data: {
      taskId: workflowInfo().workflowId,
      procedure: planned?.plan.action ?? (argument as BareStart).action,
      ordinal: planned?.ordinal ?? 1,
      plan: planned?.plan ?? null,
    },
  } as const;
}

/** The code of the name that the task was started with. Without it another worker, or the next deployment, has it. */
function codeNamed(exported: Readonly<Record<string, unknown>>, name: string): AnyCode {
  const found = Object.values(exported).find(
    (value) =>
      typeof value === 'object' && value !== null && 'procedure' in value && value.procedure === name,
  );
  if (found !== undefined) return found as AnyCode;
  throw new ChangedCode(
    `This worker has no procedure named ${name}: export procedure('${name}', …) from the file that \`procedures.code\` names.`,
  );
}

/** What the code returned, or why it can not be kept: a failure like any other, not a run that can never go on. */
function returned(value: unknown): Json | Error {
  try {
    const result = plainValue(value);
    return tooLarge('result', result) ?? result;
  } catch {
    return new Error('The procedure returned what can not be written as JSON: return plain data.');
  }
}

/** Runs whose clock went on while one needed attention go on as they began. */
function isPersonAwaited({ phase }: TaskState): boolean {
  if (phase.kind === 'awaiting_approval') return true;
  return phase.kind === 'needs_attention' && patched('attention-off-the-clock');
}

class Pass {
  readonly #run: ProcedureRun;
  readonly #argument: ProcedureArgument;
  readonly #exported: Readonly<Record<string, unknown>>;
  #restartWith: JsonObject | null = null;

  constructor(run: ProcedureRun, argument: ProcedureArgument, exported: Readonly<Record<string, unknown>>) {
    this.#run = run;
    this.#argument = argument;
    this.#exported = exported;
    run.input = argument.input;
  }

  async live(): Promise<TaskOutcome> {
    const run = this.#run;
    // A cancel that came with the start is heard before the code begins.
    await Promise.resolve();
    while (run.state.phase.kind === 'planning') await this.#plan(this.#argument as BareStart);
    run.resume();
    if (run.state.phase.kind === 'running' && !isStopped(run.state)) this.#begin();
    for (;;) {
      await this.#untilCodeIsOver();
      if ((await run.settled()) === 'rest') await this.#startAfresh();
      if (this.#restartWith === null || isStopped(run.state)) break;
      this.#restart(this.#restartWith);
    }
    const { state } = run;
    if (isStopped(state) && state.phase.kind !== 'finished') {
      const reason = state.failure === null ? 'cancelled' : 'procedure_failed';
      if ((await run.undoing.undo(reason, '')) === 'rest') await this.#startAfresh();
    }
    return run.end();
  }

  async #plan(start: BareStart): Promise<void> {
    const { journal, state } = this.#run;
    const planned = await ledgerActivities.planTask({ start, taskId: state.taskId }).catch(() => null);
    if (planned === null) return sleep(PLANNING_RETRY_MS);
    if (planned.kind === 'refused') {
      const { kind: _kind, ...data } = planned;
      journal.append({ type: 'procedure_refused', data });
      return;
    }
    this.#run.input = planned.input;
    journal.append({ type: 'procedure_planned', data: { plan: planned.plan, ordinal: planned.ordinal } });
  }

  #begin(): void {
    const run = this.#run;
    const { run: code } = codeNamed(this.#exported, run.state.procedure);
    const input = plainValue(run.input) as JsonObject;
    const handle = handleFor(run, '', (next) => (this.#restartWith = next));
    new Promise((resolve) => resolve(code(handle, input)))
      .then(
        (value) => {
          if (this.#restartWith !== null || isStopped(run.state)) return;
          const result = returned(value);
          if (result instanceof Error) this.#failWith(result);
          else run.journal.append({ type: 'procedure_returned', data: { result } });
        },
        (error: unknown) => {
          if (!isStopped(run.state)) this.#failWith(error);
        },
      )
      .catch(run.fail);
  }

  #failWith(error: unknown): void {
    this.#run.journal.append({ type: 'procedure_failed', data: failureOf(error) });
    this.#run.stop('procedure');
  }

  /** It returned, asked to be run anew, or goes no further. */
  async #untilCodeIsOver(): Promise<void> {
    const run = this.#run;
    const isCodeOver = (): boolean =>
      this.#restartWith !== null || run.state.phase.kind !== 'running' || isStopped(run.state);
    while (!isCodeOver()) {
      const deadline = this.#deadline();
      const isMoved = (): boolean => (this.#deadline() === null) !== (deadline === null);
      await run.until(() => isCodeOver() || run.isAtRest() || isMoved(), deadline);
      if (isCodeOver()) return;
      if (run.isAtRest()) await this.#startAfresh();
      const now = this.#deadline();
      if (now === null || Date.now() < now) continue;
      const message = 'The procedure’s run deadline passed.';
      const data = { cause: 'deadline_exceeded', error: { code: 'deadline_exceeded', message } } as const;
      run.journal.append({ type: 'procedure_failed', data });
      run.stop('procedure');
    }
  }

  /** S5.3: the time people took is not the procedure's. */
  #deadline(): number | null {
    const { plan, startedAt, past } = this.#run.state;
    const states = this.#run.stepStates;
    if (plan === null || states.some(isPersonAwaited)) return null;
    const humanWaitMs = states.reduce((sum, state) => sum + state.humanWaitMs, past?.humanWaitMs ?? 0);
    return startedAt + plan.deadlines.runMs + humanWaitMs;
  }

  #restart(input: JsonObject): void {
    const run = this.#run;
    run.journal.append({ type: 'procedure_restarted', data: { runs: run.state.restarts + 1 } });
    run.items.forget();
    this.#restartWith = null;
    run.input = input;
    this.#begin();
  }

  /** S3.6: nothing that was sent to this run is lost over the boundary. */
  async #startAfresh(): Promise<never> {
    const run = this.#run;
    await condition(() => run.isAtRest());
    const { plan, ordinal } = run.state;
    if (plan === null) throw new Error('a procedure continues as new once it is planned');
    const carried = run.snapshot();
    const isLarge = JSON.stringify(carried).length > PROCEDURE_LIMITS.carriedBytesMax;
    if (isLarge && !isStopped(run.state) && !isRecordBounded()) {
      const message = `What the procedure has on record exceeds ${PROCEDURE_LIMITS.carriedBytesMax} characters: give its steps less, or restart more often.`;
      const error = { code: 'procedure_too_large', message };
      run.journal.append({ type: 'procedure_failed', data: { cause: 'procedure_failed', error } });
    }
    return continueAsNew<(argument: ProcedureArgument) => Promise<TaskOutcome>>({
      v: 1,
      plan,
      input: run.input,
      ordinal,
      carried: run.snapshot(),
    });
  }
}
