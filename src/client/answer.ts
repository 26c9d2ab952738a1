/** Facts become an answer: the result is fetched where it is kept by reference, and the status is put into words. */
import type { Ledger } from '../ledger/ledger.ts';
import type { Json } from '../task/json.ts';
import type { StoredResult } from '../task/outcome.ts';
import { statusMessage } from './status-message.ts';
import type { TaskAnswer } from './task-client.ts';
import type { TaskFacts } from './task-facts.ts';

/** Throws `ledger_unavailable` when the result is kept in a ledger that can't be read. */
export async function toAnswer(ledger: Pick<Ledger, 'getPayload'>, facts: TaskFacts): Promise<TaskAnswer> {
  const { tenant, attentionAbout, nextEligibleAt, waitsFor, result: stored, ...rest } = facts;
  const { result, resultDropped } = await resolveResult(ledger, tenant, stored);
  return {
    ...rest,
    result,
    ...(resultDropped && { resultDropped }),
    statusMessage: statusMessage({
      ...rest,
      attentionAbout,
      nextEligibleAt,
      ...(waitsFor !== undefined && { waitsFor }),
      isResultDropped: resultDropped !== undefined,
    }),
  };
}

interface ResolvedResult {
  result: Json;
  resultDropped?: { sha256: string; bytes: number };
}

/** A reference whose payload is gone reads like a dropped result: the hash is still the proof of what it was. */
async function resolveResult(
  ledger: Pick<Ledger, 'getPayload'>,
  tenant: string,
  stored: StoredResult | null,
): Promise<ResolvedResult> {
  switch (stored?.kind) {
    case undefined:
      return { result: null };
    case 'inline':
      return { result: stored.value };
    case 'dropped':
      return { result: null, resultDropped: { sha256: stored.sha256, bytes: stored.bytes } };
    case 'reference': {
      const text = await ledger.getPayload(tenant, stored.sha256);
      if (text === null)
        return { result: null, resultDropped: { sha256: stored.sha256, bytes: stored.bytes } };
      return { result: JSON.parse(text) as Json };
    }
    default:
      return stored satisfies never;
  }
}
