/** Puts what a handler returned where it can be kept, and finds again what a row keeps. */
import type { OperationRow } from '../ledger/ledger.ts';
import type { Json } from '../task/json.ts';
import type { StoredResult } from '../task/outcome.ts';
import type { Attempt } from './attempt.ts';
import { persist } from './persist.ts';
import { NO_RESULT, checkOutput, composeResult, droppedResult } from './result.ts';
import type { ComposedResult, Result } from './result.ts';

/** `misfit`: what is wrong with an output that the contract does not allow; the effect took place all the same. */
export interface KeptOutput {
  result: Result;
  misfit: string | null;
}

export async function keepOutput(attempt: Attempt, output: unknown): Promise<KeptOutput> {
  const { composed, misfit } = composeOutput(attempt, output);
  return { result: await keepPayload(attempt, composed), misfit };
}

export function composeOutput(
  attempt: Attempt,
  output: unknown,
): { composed: ComposedResult; misfit: string | null } {
  const sensitive = attempt.plan.sensitive.output;
  const checked = checkOutput(attempt.deps.contract, output);
  if (checked.kind === 'fits') {
    attempt.secrets.add(checked.value, sensitive);
    return { composed: composeResult(checked.value, sensitive), misfit: null };
  }
  // In a value of another shape nobody can tell where its sensitive fields are.
  const value = sensitive.length > 0 ? undefined : checked.value;
  if (checked.kind === 'inexact') return { composed: droppedResult(value, sensitive), misfit: null };
  return {
    composed: value === undefined ? droppedResult(value, sensitive) : composeResult(value, sensitive),
    misfit: checked.issue,
  };
}

/** A result too large to keep, or a table that can't take it, never undoes a commit (interfaces.md "Sizes"). */
export async function keepPayload(attempt: Attempt, composed: ComposedResult): Promise<Result> {
  const { payload, value, stored, answer } = composed;
  if (payload === null) return { value, stored, answer };
  const { ledger, log } = attempt.deps;
  try {
    await persist(() => ledger.putPayload(attempt.plan.principal.tenant, payload));
    return { value, stored, answer };
  } catch {
    log?.warn({ operationId: attempt.operationId }, 'a large result could not be stored and is dropped');
    const dropped: StoredResult = { ...stored, kind: 'dropped' } as StoredResult;
    return { value, stored: dropped, answer: dropped };
  }
}

/** The value a row holds or refers to; undefined when it was dropped or its payload is gone. */
export async function recallValue(attempt: Attempt, stored: StoredResult | null): Promise<Json | undefined> {
  switch (stored?.kind) {
    case undefined:
    case 'dropped':
      return undefined;
    case 'inline':
      return stored.value;
    case 'reference': {
      const text = await attempt.deps.ledger.getPayload(attempt.plan.principal.tenant, stored.sha256);
      return text === null ? undefined : (JSON.parse(text) as Json);
    }
    default:
      return stored satisfies never;
  }
}

/** Whether the row's result is what the handler returned, so that no lookup is needed to verify or undo the effect. */
export function isRecallable(attempt: Attempt, row: OperationRow): boolean {
  return row.result !== null && row.result.kind !== 'dropped' && attempt.plan.sensitive.output.length === 0;
}

export function recalled(stored: StoredResult | null, value: Json | undefined): Result {
  return { value: value ?? null, stored: stored ?? NO_RESULT, answer: stored ?? NO_RESULT };
}
