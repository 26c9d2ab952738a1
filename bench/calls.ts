/** The calls that are compared: the same booking, through Holdfast, through a bare workflow, and with nothing around it. */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { Client } from '@temporalio/client';
import type { HoldfastClient } from '../src/client/index.ts';
import type { Principal } from '../src/task/plan.ts';
import { theTarget } from './effect.ts';
import type { Booking } from './effect.ts';
import type { Contender } from './pairs.ts';
import { BARE_QUEUE } from './system.ts';

const CALL_MS_MAX = 60_000;
const booking: Booking = { sku: 'widget', quantity: 3 };

interface Caller {
  client: HoldfastClient;
  temporal: Client;
  principal: Principal;
  /** Where client and worker share a process and a connection: both sides then ask for an eager start. */
  isEager: boolean;
}

/**
 * A keyed call, from planning to the verified result. The result is known when the ledger has it: the workflow closes a
 * moment later, and until then the call is not settled.
 */
export function durableCall({ client, temporal, principal }: Caller, action: string): Contender {
  return {
    async call() {
      const { taskId } = await client.start({ action, args: { ...booking }, key: randomUUID(), principal });
      const answer = await client.wait(taskId, principal, { timeoutMs: CALL_MS_MAX });
      if (answer.status !== 'completed')
        throw new Error(`${action} ended ${answer.status}: ${answer.statusMessage}`);
    },
    settle: () => untilClosed(temporal, "WorkflowType = 'action' AND ExecutionStatus = 'Running'"),
  };
}

async function untilClosed(temporal: Client, query: string): Promise<void> {
  while ((await temporal.workflow.count(query)).count > 0) await delay(2);
}

export function bareCall(
  { temporal, isEager }: Caller,
  type: 'bareActivity' | 'bareLocalActivity',
): Contender {
  return {
    call: () => {
      const id = randomUUID();
      return temporal.workflow.execute(type, {
        workflowId: id,
        taskQueue: BARE_QUEUE,
        args: [id, { ...booking }],
        requestEagerStart: isEager,
      });
    },
  };
}

export const effectAlone: Contender = {
  call: () => Promise.resolve(theTarget().book(randomUUID(), { ...booking })),
};
