/**
 * How a task asks for its lease, hears of the grant and gives it back (S8.2). The first request goes by an activity, which
 * begins the lease's workflow where there is none; what follows goes to it straight.
 */
import { getExternalWorkflowHandle, setHandler, workflowInfo } from '@temporalio/workflow';
import type { AcquireLeaseRequest } from '../src/task/activity-api.ts';
import { judgeGrant } from '../src/task/held-lease.ts';
import type { LeaseVerdict } from '../src/task/held-lease.ts';
import type { LeaseRelease } from '../src/task/lease.ts';
import type { Plan } from '../src/task/plan.ts';
import type { Journal } from './journal.ts';
import { leaseGrantedSignal, leaseReleaseSignal, leaseRenewSignal } from './messages.ts';
import type { LeaseGrantMessage } from './messages.ts';
import { fieldsOf } from './requests.ts';
import { ledgerActivities } from './steps.ts';

type Ask = Extract<LeaseVerdict, { do: 'lease' }>;
type Release = Extract<LeaseVerdict, { do: 'release' }>;

/** Until it was asked for; the grant comes as a signal, perhaps before. */
export async function askForLease(journal: Journal, plan: Plan, { request, holding }: Ask): Promise<void> {
  const { lease, recorded, principal } = plan;
  if (lease == null) throw new Error('a lease for a plan that names no resource');
  const { id, resource, leaseMs } = lease;
  journal.append({
    type: 'lease_requested',
    data: { request, id, resource, leaseMs, ...(holding !== null && { holding }) },
  });
  const owner = ownerOf(journal);
  if (holding !== null) {
    const renewal = { ...owner, request, leaseMs, holding };
    const isHeard = await isDelivered(getExternalWorkflowHandle(id).signal(leaseRenewSignal, renewal));
    if (!isHeard) journal.append({ type: 'lease_ask_failed', data: { request, isGone: true } });
    return;
  }
  const above = journal.state.lease?.above ?? 0;
  const asking: AcquireLeaseRequest = { ...owner, tenant: principal.tenant, lease, request, recorded, above };
  const isAsked = await isDelivered(ledgerActivities.acquireLease(asking));
  if (!isAsked) journal.append({ type: 'lease_ask_failed', data: { request, isGone: false } });
}

/** Gone already where it ran out, or where its workflow has ended: then there is nothing to give back. */
export async function releaseLease(journal: Journal, { id, request, fence }: Release): Promise<void> {
  journal.append({ type: 'lease_released', data: { id, request, fence } });
  await giveBack(id, { ...ownerOf(journal), request, ...(fence !== null && { fence }) });
}

/** `journalOf`: of the task, or of the step that is named; null when there is none. */
export function answerGrants(journalOf: (step: string | undefined) => Journal | null): void {
  setHandler(leaseGrantedSignal, (message): void | Promise<void> => {
    const grant = grantOf(message);
    if (grant === null) return;
    const { id, step, request, fence, until } = grant;
    const journal = journalOf(step);
    const meaning = journal === null ? 'unwanted' : judgeGrant(journal.state, grant);
    if (journal !== null && meaning === 'awaited')
      journal.append({ type: 'lease_granted', data: { request, fence, until } });
    if (meaning !== 'unwanted') return;
    const owner = { taskId: workflowInfo().workflowId, ...(step !== undefined && { step }) };
    return giveBack(id, { ...owner, request, fence });
  });
}

function giveBack(id: string, release: LeaseRelease): Promise<void> {
  return isDelivered(getExternalWorkflowHandle(id).signal(leaseReleaseSignal, release)).then(() => undefined);
}

const isDelivered = (sent: Promise<unknown>): Promise<boolean> =>
  sent.then(
    () => true,
    () => false,
  );

function ownerOf({ state: { taskId, stepId } }: Journal) {
  return { taskId, ...(stepId !== undefined && { step: stepId }) };
}

/** Anyone may signal anything. */
function grantOf(message: unknown): LeaseGrantMessage | null {
  const { id, step, request, fence, until } = fieldsOf(message);
  if (typeof id !== 'string' || !id.startsWith('lease_')) return null;
  if (typeof request !== 'number' || typeof fence !== 'number' || typeof until !== 'number') return null;
  if (step !== undefined && typeof step !== 'string') return null;
  return { id, request, fence, until, ...(step !== undefined && { step }) };
}
