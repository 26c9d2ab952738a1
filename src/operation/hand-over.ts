/**
 * An execution that the server goes on with as a task of its own (M8.4): put on record under the claim of that execution,
 * so that whoever comes later watches the task instead of asking again.
 */
import { z } from 'zod';
import { remoteTaskIn } from '../contract/handlers.ts';
import type { RemoteTaskHandle } from '../contract/remote-server.ts';
import type { Failure } from '../task/failure.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import type { Before } from './execute.ts';
import type { HeldClaim } from './held-claim.ts';
import { tooLate } from './look.ts';
import { persist } from './persist.ts';
import { raiseAttention, recordLate } from './record.ts';
import type { EffectAttempt } from './record.ts';

const text = z.string().min(1).max(1_024);
const HANDLE: z.ZodType<RemoteTaskHandle> = z.object({
  server: text,
  tool: text,
  taskId: text,
  pollIntervalMs: z.number().min(0).transform(Math.ceil),
  ttlMs: z.number().min(0).transform(Math.ceil).nullable(),
});

/** Null: what it names is no handle. */
export function handleIn(answered: unknown): RemoteTaskHandle | null {
  const checked = HANDLE.safeParse(remoteTaskIn(answered));
  return checked.success ? checked.data : null;
}

export async function handOver(
  attempt: EffectAttempt,
  held: HeldClaim,
  answered: unknown,
  before: Before,
): Promise<OperationOutcome> {
  const handle = handleIn(answered);
  if (handle === null) return raiseAttention(attempt, held.claim, unwatched('its handle is none'));
  const inDoubtBefore = before === 'in_doubt';
  const { ledger } = attempt.deps;
  const kept = await persist(() => ledger.registerRemoteTask(held.claim, { handle, inDoubtBefore }));
  switch (kept.kind) {
    case 'registered':
      return { kind: 'remote', remote: handle };
    case 'known':
      return kept.row.phase === 'ended'
        ? raiseAttention(attempt, held.claim, unwatched('the task it names had ended before'))
        : { kind: 'remote', remote: handle };
    case 'another':
      return raiseAttention(attempt, held.claim, unwatched('another task of the same operation is alive'), {
        type: 'possible_duplicate',
      });
    case 'stale':
      await recordLate(attempt, held.claim, { kind: 'remote', ...handle });
      return tooLate(kept.operation, attempt.request);
    default:
      return kept satisfies never;
  }
}

const unwatched = (why: string): Failure => ({
  kind: 'unknown',
  code: 'outcome_unknown',
  message: `The server goes on with this as a task of its own, which can not be watched: ${why}.`,
});
