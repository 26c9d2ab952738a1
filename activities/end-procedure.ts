/** The end of a procedure, written into its row and those of its steps. */
import type { Ledger } from '../src/ledger/ledger.ts';
import { composeResult } from '../src/operation/result.ts';
import type { ProcedureActivities, ProcedureEndRequest } from '../src/task/activity-api.ts';

type Deps = { ledger: Pick<Ledger, 'endProcedure' | 'putPayload'> };

export async function endProcedure(
  { ledger }: Deps,
  { plan, taskId, ordinal, end, result, journal }: ProcedureEndRequest,
): ReturnType<ProcedureActivities['endProcedure']> {
  const { operationId, principal } = plan;
  const kept = end.status === 'completed' ? composeResult(result, plan.sensitive.output) : null;
  if (kept !== null && kept.payload !== null) await ledger.putPayload(principal.tenant, kept.payload);
  const stored = kept?.stored ?? null;
  const answer = await ledger.endProcedure({
    operationId,
    taskId,
    ordinal,
    end,
    result: stored,
    notes: journal,
  });
  if (answer.kind === 'superseded') return { kind: 'superseded' };
  return { kind: 'ended', end: answer.row.end ?? end, result: kept?.answer ?? null };
}
