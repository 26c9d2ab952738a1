/** S3.5: a person's answer to `needs_attention`, written into the ledger. */
import { canonicalText } from '../contract/canonical.ts';
import { redact } from '../contract/redact.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { ResolveRequest } from '../task/activity-api.ts';
import type { Resolution } from '../task/event.ts';
import type { Json } from '../task/json.ts';
import type { TaskEnd } from '../task/outcome.ts';
import type { Plan } from '../task/plan.ts';

/**
 * Answers what the task ends with, null when it goes on. Where the row is not in `attention` (this activity ran before)
 * nothing is changed, and the row's recorded end is answered. A `not_applied` that the attempt's own report contradicts
 * changes nothing either: the task goes on, finds its row in `attention`, and asks again.
 */
export async function resolveOperation(
  { ledger }: { ledger: Pick<Ledger, 'resolve'> },
  request: ResolveRequest,
): Promise<{ end: TaskEnd | null }> {
  const { plan, taskId, ordinal, attempt, end, journal } = request;
  const resolution = redacted(plan, request.resolution);
  const { operationId } = plan;
  const answer = await ledger.resolve({
    operationId,
    taskId,
    ordinal,
    attempt,
    resolution,
    end,
    notes: journal,
  });
  return { end: answer.kind === 'written' ? end : answer.row.end };
}

/** A large result was redacted before it was stored by reference; a small one comes whole (S2.10). */
function redacted(plan: Plan, resolution: Resolution): Resolution {
  if (resolution.as !== 'applied' || resolution.result?.kind !== 'inline') return resolution;
  const value = JSON.parse(canonicalText(redact(resolution.result.value, plan.sensitive.output))) as Json;
  return { ...resolution, result: { kind: 'inline', value } };
}
