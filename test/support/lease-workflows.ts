/** Workflow code of the lease's tests: the lease itself, and an owner that keeps what it was told. */
import {
  condition,
  defineQuery,
  defineSignal,
  getExternalWorkflowHandle,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { LeaseGrantMessage } from '../../workflows/messages.ts';
import { leaseGrantedSignal, leaseReleaseSignal } from '../../workflows/messages.ts';

export { lease } from '../../workflows/lease.ts';

const grantsQuery = defineQuery<LeaseGrantMessage[]>('grants');
const overSignal = defineSignal('over');

/** `releases`: gives each grant back at once. Ends when it is told that it is over. */
export async function leaseOwner({ releases }: { releases: boolean }): Promise<void> {
  const grants: LeaseGrantMessage[] = [];
  let isOver = false;
  setHandler(grantsQuery, () => grants);
  setHandler(overSignal, () => void (isOver = true));
  setHandler(leaseGrantedSignal, async (grant) => {
    grants.push(grant);
    if (!releases) return;
    const { id, step, request, fence } = grant;
    const owner = { taskId: workflowInfo().workflowId, ...(step !== undefined && { step }) };
    await getExternalWorkflowHandle(id).signal(leaseReleaseSignal, { ...owner, request, fence });
  });
  await condition(() => isOver);
}
