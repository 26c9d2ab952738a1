/**
 * What a task was started with, or what an approver made of it, read back from its history: so that a task whose workflow
 * was killed can be gone on with (S3.8). Null when the history is gone, of another shape, or silent too long.
 */
import type { Client } from '@temporalio/client';
import { decodeArrayFromPayloads } from '@temporalio/common/lib/internal-non-workflow/index.js';
import type { temporal } from '@temporalio/proto';
import type { PlanEditResult } from '../task/activity-api.ts';
import type { PlanEdit } from '../task/plan.ts';
import type { PlannedStart } from './engine.ts';

type HistoryEvent = temporal.api.history.v1.IHistoryEvent;

/** The first event of its history. */
export async function startedWith(client: Client, taskId: string): Promise<PlannedStart | null> {
  const { workflowService, options } = client.workflow;
  const { history } = await workflowService.getWorkflowExecutionHistory({
    namespace: options.namespace,
    execution: { workflowId: taskId },
    maximumPageSize: 1,
  });
  return startOf(client, history?.events?.[0]);
}

/** S4.2: the plan and the arguments of this very edit. The call's own were never sent and are no substitute. */
export async function editedTo(client: Client, taskId: string, edit: PlanEdit): Promise<PlannedStart | null> {
  const { events } = await client.workflow.getHandle(taskId).fetchHistory();
  const start = await startOf(client, events?.[0]);
  if (start === null || isOf(edit, start)) return start;
  for (const event of events ?? []) {
    const payloads = event.activityTaskCompletedEventAttributes?.result?.payloads;
    const [answer] = await decodeArrayFromPayloads(client.options.loadedDataConverter, payloads);
    if (isPlannedEdit(answer) && isOf(edit, answer))
      return { v: 1, plan: answer.plan, input: answer.input, ordinal: start.ordinal };
  }
  return null;
}

const isOf = ({ callId, fingerprint }: PlanEdit, { plan }: Pick<PlannedStart, 'plan'>): boolean =>
  plan.edited?.callId === callId && plan.edited.fingerprint.input === fingerprint.input;

async function startOf(client: Client, first: HistoryEvent | undefined): Promise<PlannedStart | null> {
  const payloads = first?.workflowExecutionStartedEventAttributes?.input?.payloads;
  const [argument] = await decodeArrayFromPayloads(client.options.loadedDataConverter, payloads);
  return isPlannedStart(argument) ? argument : null;
}

function isPlannedStart(value: unknown): value is PlannedStart {
  return (
    typeof value === 'object' && value !== null && 'plan' in value && 'input' in value && 'ordinal' in value
  );
}

function isPlannedEdit(value: unknown): value is Extract<PlanEditResult, { kind: 'planned' }> {
  return typeof value === 'object' && value !== null && 'needsApproval' in value && 'plan' in value;
}
