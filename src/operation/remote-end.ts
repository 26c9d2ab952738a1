/**
 * What the remote task of an operation says about its effect, for whoever takes the operation over (S8.4).
 *
 * Invariants:
 * 1. While it may be alive nothing is executed and nothing looked up: it is watched.
 * 2. Only a completed one gives a result. How a failed or cancelled one left the target is found out as after any attempt.
 */
import { isActionFailure } from '../contract/classify-failure.ts';
import { LIMITS } from '../contract/limits.ts';
import { cut } from '../contract/text.ts';
import type { RemoteTaskRow } from '../ledger/remote-tasks.ts';
import type { Failure } from '../task/failure.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { OperationOutcome } from '../task/outcome.ts';
import { onFailure, onReturned } from './execute.ts';
import type { HeldClaim } from './held-claim.ts';
import { recallValue } from './keep-result.ts';
import type { EffectAttempt } from './record.ts';

export type RemoteFound =
  /** That is the outcome. */
  | { kind: 'decided'; outcome: OperationOutcome }
  /** It ended, and says nothing that settles the effect. `mayLive`: the server has only forgotten it. */
  | { kind: 'ended'; mayLive: boolean; message: string }
  /** The operation has none. */
  | { kind: 'none' };

export async function askRemote(attempt: EffectAttempt, held: HeldClaim): Promise<RemoteFound> {
  const row = await attempt.deps.ledger.findRemoteTask(attempt.plan.operationId);
  if (row === null) return { kind: 'none' };
  if (row.phase !== 'ended') return { kind: 'decided', outcome: { kind: 'remote', remote: row.handle } };
  const { seen } = row;
  if (seen?.kind === 'completed') return takeResult(attempt, held, row);
  const said = attempt.secrets.clean(seen?.message ?? '');
  const mayLive = seen?.kind === 'not_found';
  const how = mayLive ? 'it knows no such task any more' : `${seen?.kind ?? 'ended'}${said && `: ${said}`}`;
  return { kind: 'ended', mayLive, message: `the server says of its task: ${how}` };
}

async function takeResult(attempt: EffectAttempt, held: HeldClaim, row: RemoteTaskRow): Promise<RemoteFound> {
  const given = await givenBy(attempt, held, row);
  if (given.kind === 'gone') return unusable('its result can not be had any more');
  if (given.kind === 'not_asked') return askAgain(attempt, given.why);
  const { remoteResult } = attempt.deps.handlers;
  if (remoteResult === undefined)
    return { kind: 'decided', outcome: await onReturned(attempt, held, given.value) };
  const answer = await attempt.call<unknown>('remoteResult', [attempt.runtime.signal, held.lost], (signal) =>
    declaredAlone(() =>
      remoteResult(attempt.input(), structuredClone(given.value) as JsonObject, {
        ...attempt.lookContext(signal),
        isFirstSend: !row.inDoubtBefore,
        assertOwner: held.assertOwner,
      }),
    ),
  );
  if (answer.kind === 'returned')
    return { kind: 'decided', outcome: await onReturned(attempt, held, answer.value) };
  const { failure } = answer;
  if (failure.kind === 'unknown' || failure.kind === 'rateLimited') return unusable(failure.message);
  const before = row.inDoubtBefore ? 'in_doubt' : 'nothing_sent';
  const outcome = await onFailure(attempt, held, failure, before);
  return {
    kind: 'decided',
    outcome: outcome.kind === 'released' ? { ...outcome, ofExecution: true } : outcome,
  };
}

/**
 * A request that reading the result makes says nothing about the effect, which is over: only what the handler declares
 * does.
 */
async function declaredAlone<T>(read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    if (isActionFailure(error)) throw error;
    throw new Error('it could not be read', { cause: error });
  }
}

/** The settle budget bounds how often; at the last look it is given up. */
function askAgain(attempt: EffectAttempt, why: string): RemoteFound {
  if (attempt.request.verifyFinal) return unusable(why);
  const said = `The server's task completed, and its result could not be fetched this time: ${why}`;
  const message = cut(said, LIMITS.failureMessageLengthMax.value);
  const failure: Failure = { kind: 'unknown', code: 'outcome_unknown', message };
  return { kind: 'decided', outcome: { kind: 'unknown', failure, attention: false } };
}

const unusable = (why: string): RemoteFound => ({
  kind: 'ended',
  mayLive: false,
  message: `the server's task completed, and what came of it is not known: ${why}`,
});

type Given = { kind: 'given'; value: Json } | { kind: 'gone' } | { kind: 'not_asked'; why: string };

/** As the ledger keeps it; where it keeps none, as the server gives it once more. */
async function givenBy(
  attempt: EffectAttempt,
  held: HeldClaim,
  { result, handle }: RemoteTaskRow,
): Promise<Given> {
  const kept = await recallValue(attempt, result);
  if (kept !== undefined) return { kind: 'given', value: kept };
  const server = attempt.deps.remotes?.(handle.server);
  if (server === undefined) return { kind: 'not_asked', why: 'this worker does not know the server' };
  const answer = await attempt.call('remoteResult', [attempt.runtime.signal, held.lost], (signal) =>
    server.status(handle, signal),
  );
  if (answer.kind !== 'returned') return { kind: 'not_asked', why: answer.failure.message };
  return answer.value.kind === 'completed' ? { kind: 'given', value: answer.value.result } : { kind: 'gone' };
}
