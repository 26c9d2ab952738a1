/** Asking for the lease on a resource (S8.2), which begins its workflow where nobody holds it or waits for it. */
import type { Ledger } from '../src/ledger/ledger.ts';
import type { AcquireLeaseRequest } from '../src/task/activity-api.ts';
import type { LeaseRequest } from '../src/task/lease.ts';
import type { PlanLease } from '../src/task/plan.ts';

/** To the engine, which activities do not know; the worker gives it. */
export interface LeaseDoor {
  /** Signals the lease's workflow, and begins it first where there is none. Throws what its client throws. */
  acquire(tenant: string, lease: PlanLease, request: LeaseRequest): Promise<void>;
}

export async function acquireLease(
  { ledger, leases }: { ledger: Pick<Ledger, 'newestFence'>; leases: LeaseDoor },
  { tenant, lease, taskId, step, request, recorded, above }: AcquireLeaseRequest,
): Promise<void> {
  const seen = recorded ? await ledger.newestFence(lease.id) : 0;
  await leases.acquire(tenant, lease, {
    taskId,
    ...(step !== undefined && { step }),
    request,
    leaseMs: lease.leaseMs,
    above: Math.max(seen, above),
  });
}
