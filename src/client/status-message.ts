/**
 * What a task's status says in words, for models and people. Pure and deterministic: the same state gives the same
 * text. An unknown outcome is said in words a model obeys (M1.5): not done, not failed, do not call again.
 */
import type { AttentionAbout } from '../task/event.ts';
import { isTerminal } from '../task/outcome.ts';
import type { RemoteView } from '../task/remote-state.ts';
import type { EditedFrom, TaskEffect, TaskError, TaskStatus } from '../task/outcome.ts';

export interface StatusFacts {
  taskId: string;
  status: TaskStatus;
  effect: TaskEffect | null;
  error: TaskError | null;
  replayed: boolean;
  attached: boolean;
  autoRetry: boolean;
  cancelRequested: boolean;
  stale: boolean;
  attentionAbout: AttentionAbout | null;
  interrupted?: boolean;
  editedFrom?: EditedFrom;
  remote?: RemoteView;
  nextEligibleAt: number | null;
  waitsFor?: string;
  isResultDropped: boolean;
}

export function statusMessage(facts: StatusFacts): string {
  return [mainText(facts), ...remarks(facts)].join(' ');
}

function mainText(facts: StatusFacts): string {
  switch (facts.status) {
    case 'proposed':
      return 'Accepted and on record; nothing was sent yet.';
    case 'awaiting_approval':
      return 'Waiting for a person’s decision; nothing was sent yet.';
    case 'running':
      return `${facts.remote ? remoteText(facts.remote) : 'At work.'} ${askFor(facts)}`;
    case 'reconciling':
      return `An attempt may have reached the target; Holdfast is finding out whether it did. Not done, not failed. ${doNotCall(facts)}`;
    case 'verifying':
      return `Applied; being read back until it is confirmed. ${askFor(facts)}`;
    case 'backing_off':
      return `The last attempt failed with nothing applied; the next one begins ${when(facts.nextEligibleAt)}. ${askFor(facts)}`;
    case 'rolling_back':
      return `The effect is being undone. ${doNotCall(facts)}`;
    case 'needs_attention':
      if (facts.attentionAbout === 'approval')
        return `Nobody decided in time; nothing was sent. A person must ask again or give it up. ${doNotCall(facts)}`;
      return facts.attentionAbout === 'rollback'
        ? `The effect could not be undone; a person is alerted and must resolve it. ${doNotCall(facts)}`
        : `It is not known whether the effect took place: not done, not failed. A person is alerted and must resolve it. ${doNotCall(facts)}`;
    case 'completed':
      return facts.replayed
        ? 'Done by an earlier call; this is its stored result, nothing was sent now.'
        : 'Done.';
    case 'failed':
      return `${facts.error?.message ?? 'It failed.'} ${effectText(facts)}`;
    case 'cancelled':
      return facts.effect === 'rolled_back'
        ? 'Cancelled; the effect was undone.'
        : 'Cancelled; nothing was applied.';
    default:
      return facts.status satisfies never;
  }
}

function remoteText({ server, message, failures }: RemoteView): string {
  const said = message === null ? '' : `: ${message.replace(/\.$/, '')}`;
  const away = failures > 0 ? ` It has not answered ${failures} times in a row and is asked on.` : '';
  return `At work at ${server}${said}.${away}`;
}

function effectText(facts: StatusFacts): string {
  switch (facts.effect) {
    case 'none':
      return 'Nothing was applied.';
    case 'applied':
      return 'The effect stands.';
    case 'rolled_back':
      return 'The effect was undone.';
    case 'unknown':
    case null:
      return `Whether the effect took place is not known: not done, not failed. ${doNotCall(facts)}`;
    default:
      return facts.effect satisfies never;
  }
}

function remarks(facts: StatusFacts): string[] {
  const { status } = facts;
  const isOpen = !isTerminal(status);
  return [
    ...(isOpen && facts.cancelRequested ? ['Cancel requested; the task ends at its next safe point.'] : []),
    ...(status === 'completed' && facts.cancelRequested
      ? ['A cancel came after the effect and changed nothing.']
      : []),
    ...(status === 'completed' && facts.isResultDropped
      ? ['The result could not be kept (too large, or no JSON); its hash and size are.']
      : []),
    ...(facts.editedFrom ? [editRemark(facts.editedFrom, status)] : []),
    ...(isOpen && facts.waitsFor !== undefined
      ? [`Waiting for ${facts.waitsFor}: one task at a time may work on it.`]
      : []),
    ...(isOpen && facts.interrupted ? ['Interrupted by a person; nothing begins until it is resumed.'] : []),
    ...(isOpen && facts.attached ? ['Met an equal call that is still open.'] : []),
    ...(isOpen && !facts.autoRetry
      ? ['Called without an idempotency key: an unknown outcome will not be sent again automatically.']
      : []),
    ...(facts.stale ? ['This is the last known state; no worker answered just now.'] : []),
  ];
}

/** Field case 22: whoever sees this has its call answered, and must not make it again. */
const editRemark = ({ by }: EditedFrom, status: TaskStatus): string =>
  status === 'completed'
    ? `Executed with arguments that ${by} edited, not with those of the call; do not call again with the original ones.`
    : `The arguments are not those of the call: ${by} edited them.`;

const askFor = ({ taskId }: StatusFacts): string => `Ask for task ${taskId}.`;
const doNotCall = ({ taskId }: StatusFacts): string => `Do not call again; ask for task ${taskId}.`;
const when = (at: number | null): string => (at === null ? 'soon' : `at ${new Date(at).toISOString()}`);
