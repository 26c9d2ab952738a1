/**
 * The inbox of those who are waited for is the engine's visibility: search attributes, touched only when the wait for a
 * person begins or ends (architecture.md, idea 6).
 *
 * They must be registered in the namespace. Where they are not, the server refuses the workflow task that sets them
 * and tries it again until they are: the task then stands still, loses nothing, and goes on by itself.
 */
import { upsertSearchAttributes } from '@temporalio/workflow';
import { SearchAttributeType, defineSearchAttributeKey } from '@temporalio/common';
import type { TaskState } from '../src/task/state.ts';
import { statusOf } from '../src/task/view.ts';
import { SEARCH_ATTRIBUTES } from './messages.ts';

const STATUS = defineSearchAttributeKey(SEARCH_ATTRIBUTES.status, SearchAttributeType.KEYWORD);
const WAITING_SINCE = defineSearchAttributeKey(SEARCH_ATTRIBUTES.waitingSince, SearchAttributeType.DATETIME);

export function enterInbox(state: TaskState): void {
  upsertSearchAttributes([
    { key: STATUS, value: statusOf(state) },
    {
      key: WAITING_SINCE,
      value: new Date(waitingSince(state)),
    },
  ]);
}

function waitingSince({ phase, updatedAt }: TaskState): number {
  if (phase.kind === 'awaiting_approval') return phase.approval.openedAt;
  return phase.kind === 'needs_attention' ? phase.since : updatedAt;
}

export function leaveInbox(): void {
  upsertSearchAttributes([
    { key: STATUS, value: null },
    { key: WAITING_SINCE, value: null },
  ]);
}
