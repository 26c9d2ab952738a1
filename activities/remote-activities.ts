/** The activities of workflow `remoteTask`: control calls of this worker, with Temporal's cancellation as their stop. */
import { ApplicationFailure } from '@temporalio/common';
import type { OperationLog } from '../src/operation/deps.ts';
import type { RemoteCalls } from '../src/remote/remote-calls.ts';
import type { RemoteActivities } from '../src/task/activity-api.ts';
import { asActivity } from './activity-failure.ts';
import { withRuntime } from './activity-runtime.ts';

/** `calls` null: this worker knows no other servers; another may. */
export function createRemoteActivities(
  calls: RemoteCalls | null,
  log: OperationLog | undefined,
): RemoteActivities {
  const run = <T>(work: (calls: RemoteCalls, stop: AbortSignal) => Promise<T>): Promise<T> => {
    if (calls === null)
      throw ApplicationFailure.nonRetryable('This worker knows no other servers.', 'unknown_action');
    return asActivity(log, () => withRuntime(({ signal }) => work(calls, signal)));
  };
  return {
    pollRemoteTask: ({ operationId, keepResult }) =>
      run((own, stop) => own.poll(operationId, keepResult, stop)),
    cancelRemoteTask: ({ operationId }) => run((own, stop) => own.cancel(operationId, stop)),
    answerRemoteTask: ({ operationId, responses }) =>
      run((own, stop) => own.answer(operationId, responses, stop)),
  };
}
