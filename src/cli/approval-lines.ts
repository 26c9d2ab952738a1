/** An open approval as the person who decides sees it. */
import type { ApprovalView } from '../client/task-client.ts';
import { APPROVAL_ACTION } from '../task/approval.ts';
import { oneLine } from './terminal.ts';
import type { Terminal } from './terminal.ts';

/** S4.7: what will happen, not only what was asked. */
export function writeApproval(terminal: Terminal, approval: ApprovalView): void {
  const { callId, action, view, roles, approvedBy, quorum, expiresAt, challenge } = approval;
  const { arguments: args, precondition, rollback, requester } = view;
  const lines: [string, string][] = [
    ['approval', `${callId}, until ${new Date(expiresAt).toISOString()}`],
    ['action', action === APPROVAL_ACTION ? 'none: the procedure asks before it goes on' : action],
    ['asked by', String(requester)],
    ['arguments', JSON.stringify(args)],
    ['precondition', JSON.stringify(precondition)],
    ['undone by', JSON.stringify(rollback)],
    ['who decides', roles.length === 0 ? 'anybody but the requester' : roles.join(' or ')],
    ...(quorum > 1 ? [['approved by', `${approvedBy.length} of ${quorum}`] as [string, string]] : []),
    ...(challenge === null ? [] : [['phrase', challenge] as [string, string]]),
  ];
  for (const [name, text] of lines)
    terminal.write(`  ${terminal.paint('dim', name.padEnd(13))}${oneLine(text)}`);
}
