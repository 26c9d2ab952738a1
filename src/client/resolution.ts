/** A person's resolution, checked before it is sent: what it claims must be what the contract could have answered. */
import { checkResult } from '../contract/arguments.ts';
import { canonicalText } from '../contract/canonical.ts';
import { HoldfastError } from '../contract/error.ts';
import type { Action } from '../contract/implement-action.ts';
import { LIMITS } from '../contract/limits.ts';
import { keptText } from '../contract/text.ts';
import { redact } from '../contract/redact.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Resolution } from '../task/event.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { StoredResult } from '../task/outcome.ts';
import type { Principal } from '../task/plan.ts';
import type { ResolutionInput } from './task-client.ts';

/** As much as the journal keeps. */
const NOTE_LENGTH_MAX = 1_000;

/** Throws `invalid_resolution` (`details.issues`). `action` undefined: its contract is not configured here. */
export async function checkedResolution(
  ledger: Pick<Ledger, 'putPayload'>,
  action: Action | undefined,
  principal: Principal,
  input: ResolutionInput,
): Promise<Resolution> {
  if (typeof input !== 'object' || (input as unknown) === null)
    throw invalid([{ path: '', message: 'write { as: applied, not_applied or abandoned }' }]);
  const note = checkNote(input.note);
  const common = { by: principal.subject, ...(note !== undefined && { note }) };
  switch (input.as) {
    case 'applied': {
      if (input.result === undefined) return { as: 'applied', ...common };
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

async function storedResult(
  ledger: Pick<Ledger, 'putPayload'>,
  action: Action | undefined,
  tenant: string,
  result: Json,
): Promise<StoredResult> {
  if (!action)
    throw invalid([
      { path: '/result', message: 'the action is not configured here, so its result can not be checked' },
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

export const isLateApplied = (lateOutcome: Json | null): boolean =>
  typeof lateOutcome === 'object' &&
  lateOutcome !== null &&
  'kind' in lateOutcome &&
  lateOutcome.kind === 'applied';

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
