/** What a model reads about a task. One idea a sentence, the instruction spelled out, no word that invites a repeat. */
import type { ApprovalView, TaskAnswer } from '../client/task-client.ts';
import type { EditedFrom } from '../task/outcome.ts';
import { openApproval, questionText } from './approval.ts';
import { isOutcomeUnknown } from './task-answer.ts';

/** A task that has not ended, as the result of the call that started it. */
export function handleWords(answer: TaskAnswer, remark = ''): string {
  const { action, taskId, status } = answer;
  const lead = isOutcomeUnknown(answer)
    ? `OUTCOME UNKNOWN: it is not known whether ${action} took effect.`
    : `STILL WORKING: ${action} has not ended yet (status ${status}).`;
  const person = personWords(answer);
  return (
    `${lead} It is not done and it has not failed.${person} ${sentence(remark)}` +
    `Do not call ${action} again: that would not make it faster and could do it twice. ` +
    `Ask for this task instead: task_wait or task_get with {"taskId": "${taskId}"}.${readWords(answer)}`
  );
}

/**
 * A task that a person must approve first. `answerable`: the approval, where policy lets this connection carry the
 * decision.
 */
export function approvalWords(answer: TaskAnswer, answerable: ApprovalView | null, remark = ''): string {
  const { action, taskId } = answer;
  const lead =
    `WAITING FOR A DECISION: ${action} has not begun, a person must decide first. ` +
    `It is not done and it has not failed. ${sentence(remark)}`;
  const again = `Do not call ${action} again: that would not make it faster. `;
  const ask = (tool: string) => `${tool} with {"taskId": "${taskId}"}`;
  if (answerable === null)
    return `${lead}${elsewhereWords(answer).trim()} ${again}Ask for this task later: ${ask('task_get')}.`;
  const argumentsText = `{"taskId": "${taskId}", "callId": "${answerable.callId}", "decision": "approve" or "reject"}`;
  return (
    `${lead}${again}Show a person what follows, let them decide, and pass on their decision with task_answer and ` +
    `${argumentsText}. Never decide for them. Until then ask for this task: ${ask('task_get')}.\n` +
    questionText(answer, answerable)
  );
}

/** Who decides an open approval, and how, where it is not decided over this connection; else nothing. */
export function elsewhereWords(answer: TaskAnswer): string {
  const approval = openApproval(answer);
  if (approval === null) return '';
  const { roles, quorum, approvedBy, requesterMayDecide } = approval;
  const who = roles.length > 0 ? `A person with role ${roles.join(' or ')}` : 'A person';
  const notWho = requesterMayDecide ? '' : ' (not the requester)';
  const quorumText = quorum > 1 ? ` ${approvedBy.length} of ${quorum} approvals are given.` : '';
  const { taskId } = answer;
  return ` ${who}${notWho} decides elsewhere: \`holdfast task approve ${taskId}\` or \`holdfast task reject ${taskId}\`.${quorumText}`;
}

const sentence = (remark: string): string => (remark === '' ? '' : `${remark} `);

function personWords({ status }: TaskAnswer): string {
  if (status === 'needs_attention') return ' A person must look at it; the answer stays open until then.';
  return status === 'awaiting_approval' ? ' A person must approve it first.' : '';
}

/** A task that ended otherwise than completed, before its error is spelled out. */
export function endWords(answer: TaskAnswer): string {
  const { action, taskId } = answer;
  const end =
    answer.status === 'cancelled' ? `CANCELLED: ${action} was cancelled` : `FAILED: ${action} failed`;
  switch (answer.effect) {
    case 'none':
      return `${end} and nothing was changed (task ${taskId}).`;
    case 'rolled_back':
      return `${end}; its effect took place and was undone (task ${taskId}).`;
    case 'applied':
      return `${end}, but its effect took place and stands (task ${taskId}). Do not call it again to repair that.`;
    case 'unknown':
    case null:
      return (
        `OUTCOME UNKNOWN: ${action} was given up with its effect unknown: not known to be done, not known to have failed ` +
        `(task ${taskId}). Do not call it again before the target has been looked at.`
      );
  }
}

/** What is special about a completed task; nothing for an ordinary one. */
export function completionNotes(answer: TaskAnswer, inexactPath: string | null): string[] {
  const { action, taskId } = answer;
  const notes: string[] = [];
  if (answer.editedFrom) notes.push(editWords(answer, answer.editedFrom));
  if (answer.replayed)
    notes.push(`Replayed: ${action} was done before under this key (task ${taskId}). Nothing was sent now.`);
  if (answer.cancelRequested)
    notes.push('A cancel was asked for, but the effect had already taken place and stands.');
  if (answer.resultDropped) {
    const { bytes, sha256 } = answer.resultDropped;
    notes.push(
      `Done. The result (${bytes} bytes, SHA-256 ${sha256}) could not be kept: too large, or no JSON. Do not call ${action} again to get it.`,
    );
  }
  if (inexactPath !== null) {
    notes.push(
      `Done. The result is withheld: the number at ${inexactPath || 'its root'} can not be shown exactly; ` +
        `the action should return it as a string. Do not call ${action} again to get it.`,
    );
  }
  return notes;
}

/** Field case 22: an agent that finds other arguments executed must not make its call again. */
const editWords = ({ action, taskId }: TaskAnswer, { by, fingerprint }: EditedFrom): string =>
  `Executed with edited arguments: ${by}, who approved ${action}, changed them (task ${taskId}, original arguments ` +
  `${fingerprint}). That answers the call: do not make it again with the original arguments.`;

const readWords = (answer: TaskAnswer): string =>
  answer.stale ? ' (Last known state; it could not be read just now.)' : '';
