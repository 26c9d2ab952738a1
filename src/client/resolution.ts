/** A person's resolution, checked before it is sent: what it claims must be what the contract could have answered. */
import { checkResult } from '../contract/arguments.ts';
import { canonicalText } from '../contract/canonical.ts';
import { HoldfastError } from '../contract/error.ts';
import type { Action } from '../contract/implement-action.ts';
import { LIMITS } from '../contract/limits.ts';
import { keptText } from '../contract/text.ts';
import { redact } from '../contract/redact.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Resolution, ResolutionMessage } from '../task/event.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { StoredResult } from '../task/outcome.ts';
import type { Principal } from '../task/plan.ts';
import type { StepView, TaskState } from '../task/state.ts';
import type { ClientDeps } from './client-deps.ts';
import type { Reading } from './reader.ts';
import type { ResolutionInput } from './task-client.ts';

/** As much as the journal keeps. */
const NOTE_LENGTH_MAX = 1_000;

/** Throws `invalid_resolution` (`details.issues`). */
export async function checkedResolution(
  { ledger, actions }: Pick<ClientDeps, 'ledger' | 'actions'>,
  reading: Pick<Reading, 'state' | 'row'>,
  principal: Principal,
  input: ResolutionInput,
): Promise<Resolution & Pick<ResolutionMessage, 'step'>> {
  if (typeof input !== 'object' || (input as unknown) === null)
    throw invalid([{ path: '', message: 'write { as: applied, not_applied or abandoned }' }]);
  const note = checkNote(input.note);
  const step = stepMeant(reading.state, input.step);
  const common = {
    by: principal.subject,
    ...(note !== undefined && { note }),
    ...(input.step !== undefined && { step: input.step }),
    ...(step !== null && { step: step.step }),
  };
  switch (input.as) {
    case 'applied': {
      const action = actionOf(actions, reading, step);
      if (input.result === undefined) {
        await mustHaveResult(ledger, action, reading, step);
        return { as: 'applied', ...common };
      }
      return {
        as: 'applied',
        ...common,
        result: await storedResult(ledger, action, principal.tenant, input.result),
      };
    }
    case 'not_applied':
    case 'abandoned':
      return { as: input.as, ...common };
    default:
      input satisfies never;
      throw invalid([{ path: '/as', message: 'write applied, not_applied or abandoned' }]);
  }
}

/** Null: a task of one action, or nobody knows. */
function stepMeant(state: TaskState | null, named: unknown): StepView | null {
  if (named !== undefined && typeof named !== 'string')
    throw invalid([{ path: '/step', message: 'write the name of a step' }]);
  if (state === null) return null;
  const { steps } = state;
  if (steps === undefined) {
    if (named === undefined) return null;
    throw invalid([{ path: '/step', message: 'the task is no procedure and has no steps' }]);
  }
  if (named !== undefined) return steps.find(({ step }) => step === named) ?? null;
  const waiting = steps.filter(({ status }) => status === 'needs_attention');
  if (waiting.length < 2) return waiting[0] ?? null;
  const names = waiting.map(({ step }) => step).join(', ');
  throw invalid([{ path: '/step', message: `several steps wait for a person, name one of them: ${names}` }]);
}

/** Undefined: whose contract it is is not known, or not configured here. */
function actionOf(
  actions: ClientDeps['actions'],
  { state, row }: Pick<Reading, 'state' | 'row'>,
  step: StepView | null,
): Action | undefined {
  const own = row === null ? undefined : actions.get(row.action);
  if (state?.steps === undefined && own?.contract.isProcedure !== true) return own;
  return step === null ? undefined : actions.get(step.action);
}

/** Where neither the ledger nor a lookup has the result, nothing would be committed in its place. */
async function mustHaveResult(
  ledger: Pick<Ledger, 'find'>,
  action: Action | undefined,
  { row }: Pick<Reading, 'row'>,
  step: StepView | null,
): Promise<void> {
  if (action === undefined || action.handlers.lookup !== undefined) return;
  const operation = step?.operationId == null ? row : await ledger.find(step.operationId);
  if (operation?.state !== 'attention' || operation.result !== null) return;
  if (checkResult(action.contract, null).ok) return;
  throw invalid([{ path: '/result', message: 'the ledger has none: say what the result was' }]);
}

async function storedResult(
  ledger: Pick<Ledger, 'putPayload'>,
  action: Action | undefined,
  tenant: string,
  result: Json,
): Promise<StoredResult> {
  if (!action)
    throw invalid([
      {
        path: '/result',
        message: 'its action is not known or not configured here, so the result can not be checked',
      },
    ]);
  const checked = checkResult(action.contract, result);
  if (!checked.ok)
    throw invalid(
      checked.issues.map(({ path, message, expected }) => ({ path: `/result${path}`, message, expected })),
    );
  const whole = canonicalText(checked.result);
  if (Buffer.byteLength(whole) <= LIMITS.resultInlineBytesMax.value)
    return { kind: 'inline', value: checked.result };
  const shown = canonicalText(redact(checked.result, action.contract.sensitive.output));
  const limit = LIMITS.resultStoredBytesMax.value;
  if (Buffer.byteLength(shown) > limit)
    throw invalid([{ path: '/result', message: `larger than ${limit} bytes` }]);
  return { kind: 'reference', ...(await ledger.putPayload(tenant, shown)) };
}

function checkNote(note: unknown): string | undefined {
  if (note === undefined) return undefined;
  if (typeof note === 'string' && note.length <= NOTE_LENGTH_MAX) return keptText(note, NOTE_LENGTH_MAX);
  throw invalid([{ path: '/note', message: `write text of at most ${NOTE_LENGTH_MAX} characters` }]);
}

export const contradicted = (): HoldfastError =>
  invalid([
    {
      path: '/as',
      message:
        'the attempt itself has reported the effect as applied (`lateOutcome` of the task); say applied, with that result, or abandoned',
    },
  ]);

function invalid(issues: JsonObject[]): HoldfastError {
  const list = issues.map(({ path, message }) => `${String(path)}: ${String(message)}`).join('; ');
  return new HoldfastError('invalid_resolution', `The resolution is not valid: ${list}.`, {
    details: { issues },
  });
}
