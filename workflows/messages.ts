/**
 * The names by which a task is spoken to. Persisted in histories: never renamed, only added to (interfaces.md "Names").
 * A bare `@temporalio/client` may use each by its string name.
 */
import { defineQuery, defineSignal, defineUpdate } from '@temporalio/workflow';
import type { DecisionMessage, DecisionReply } from '../src/task/approval.ts';
import type { Resolution, ResolutionMessage } from '../src/task/event.ts';
import type { LeaseGrant, LeaseRelease, LeaseRequest, LeaseState } from '../src/task/lease.ts';
import type { JsonObject } from '../src/task/json.ts';
import type { JournalEntry } from '../src/task/procedure-event.ts';
import type { RemoteReport } from '../src/task/remote.ts';
import type { TaskState } from '../src/task/state.ts';

export interface CancelMessage {
  by?: string;
  reason?: string;
}

/** What an update answers: the request is on record, or why it changes nothing. */
export interface MessageReply {
  accepted: boolean;
  code:
    | 'requested'
    | 'already_requested'
    | 'already_ended'
    | 'not_in_attention'
    | 'not_interrupted'
    | 'invalid_resolution'
    /** Several steps of a procedure wait for a person, and the resolution names none. */
    | 'step_not_named'
    | 'not_open'
    | 'invalid_answer';
  status: string;
}

export const WORKFLOW_ACTION = 'action';
export const WORKFLOW_PROCEDURE = 'procedure';
export const WORKFLOW_REMOTE_TASK = 'remoteTask';
export const cancelSignal = defineSignal<[CancelMessage?]>('cancel');
export const resolveSignal = defineSignal<[Resolution & ResolutionMessage]>('resolve');
export const cancelUpdate = defineUpdate<MessageReply, [CancelMessage?]>('cancelTask');
export const resolveUpdate = defineUpdate<MessageReply, [Resolution & ResolutionMessage]>('resolveTask');
/** S4.8: a decision; `kind` comes with the signal's own name. */
export type DecisionSignal = Omit<DecisionMessage, 'kind'>;

export const approveSignal = defineSignal<[DecisionSignal]>('approve');
export const editSignal = defineSignal<[DecisionSignal]>('edit');
export const rejectSignal = defineSignal<[DecisionSignal]>('reject');
export const decideUpdate = defineUpdate<DecisionReply, [DecisionMessage]>('decide');
export const interruptSignal = defineSignal<[CancelMessage?]>('interrupt');
export const resumeSignal = defineSignal<[CancelMessage?]>('resume');
export const interruptUpdate = defineUpdate<MessageReply, [CancelMessage?]>('interruptTask');
export const resumeUpdate = defineUpdate<MessageReply, [CancelMessage?]>('resumeTask');
/** What a remote task asks for: answers by the keys under which the task shows them (M2.3). */
export interface AnswerMessage {
  by?: string;
  answers: JsonObject;
}
export const answerSignal = defineSignal<[AnswerMessage]>('answer');
export const answerUpdate = defineUpdate<MessageReply, [AnswerMessage]>('answerTask');
/** From workflow `remoteTask` to the task that waits for it. */
export const remoteToldSignal =
  defineSignal<[{ operationId: string; attempt: number; report: RemoteReport }]>('remoteTold');
/** To workflow `remoteTask`; answers by the remote's own keys. */
export const cancelRemoteSignal = defineSignal('cancelRemote');
export const answerRemoteSignal = defineSignal<[JsonObject]>('answerRemote');
/** Shows that it is there. */
export const attendRemoteSignal = defineSignal('attendRemote');
export const taskQuery = defineQuery<TaskState>('task');
export const eventsQuery = defineQuery<JournalEntry[]>('events');

/** Workflow `lease`, one for each tenant and resource (S8.2). */
export const WORKFLOW_LEASE = 'lease';

/** What it is started with. `carried` is set by its own continue-as-new alone. */
export interface LeaseArgument {
  v: 1;
  tenant: string;
  resource: string;
  carried?: LeaseState;
}

export const leaseAcquireSignal = defineSignal<[LeaseRequest]>('leaseAcquire');
export const leaseRenewSignal = defineSignal<[LeaseRequest]>('leaseRenew');
export const leaseReleaseSignal = defineSignal<[LeaseRelease]>('leaseRelease');
/** To the holder; `id` is the lease's workflow, `step` the owner's. */
export type LeaseGrantMessage = LeaseGrant & { id: string; step?: string };
export const leaseGrantedSignal = defineSignal<[LeaseGrantMessage]>('leaseGranted');
export const leaseQuery = defineQuery<LeaseArgument & { state: LeaseState }>('lease');

/** Search attributes, registered by the embedded server and by `holdfast migrate`. */
export const SEARCH_ATTRIBUTES = {
  status: 'HoldfastStatus',
  tenant: 'HoldfastTenant',
  action: 'HoldfastAction',
  waitingSince: 'HoldfastWaitingSince',
} as const;
