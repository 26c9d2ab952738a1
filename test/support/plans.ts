// Plans for tests of the core and of workflow `action`: valid, with what a test is about overridden.
import type { Plan, PlanDeadlines, PlanRetry } from '../../src/task/plan.ts';

export interface PlanOverrides extends Omit<Partial<Plan>, 'deadlines' | 'retry' | 'handlers'> {
  deadlines?: Partial<PlanDeadlines>;
  retry?: Partial<PlanRetry>;
  handlers?: Partial<Plan['handlers']>;
}

export function planOf(overrides: PlanOverrides = {}): Plan {
  const { deadlines, retry, handlers, ...rest } = overrides;
  return {
    v: 1,
    action: 'reserve_inventory',
    contractVersion: 1,
    principal: { tenant: 'local', subject: 'ann', roles: ['buyer'] },
    operationId: 'op_test',
    key: 'order-1',
    keyed: true,
    effect: 'conditional',
    autoRetry: true,
    transactional: false,
    fingerprint: { sent: 'sent-hash', input: 'input-hash' },
    handlers: { precondition: true, lookup: 'plain', verify: true, rollback: true, ...handlers },
    rollback: { kind: 'inBand' },
    sensitive: { input: [], output: [] },
    deadlines: {
      attemptMs: 10_000,
      verifyMs: 30_000,
      runMs: 3_600_000,
      settleMs: 5_000,
      heartbeatMs: 5_000,
      ...deadlines,
    },
    retry: { maximumRetries: 3, initialIntervalMs: 1_000, maximumIntervalMs: 60_000, ...retry },
    onCancel: 'keep',
    cancelAttempt: 'finish',
    inline: false,
    recorded: true,
    ...rest,
  };
}
