/**
 * Who waits for a person, a row for each thing that is asked: since when, by whom, what, of whom, until when. Ids have a
 * line of their own, or no table would fit into 80 columns.
 */
import type { ApprovalView, InboxEntry, TaskAnswer } from '../client/task-client.ts';
import { APPROVAL_ACTION } from '../task/approval.ts';
import { approvalsJson, answerJson } from './task-lines.ts';
import { humanDuration, tableLines } from './terminal.ts';
import type { Column, Terminal } from './terminal.ts';

/** As the engine lists it, and as the task itself says, where a worker answers for it. */
export interface Waiting {
  entry: InboxEntry;
  task: TaskAnswer;
}

interface Row extends Waiting {
  approval: ApprovalView | null;
}

/** Where no worker answers, the engine still knows what the task waits for. */
export const waitingJson = ({ entry, task }: Waiting) => ({
  ...answerJson(task),
  ...(task.stale && { status: entry.status }),
  ...approvalsJson(task),
});

/** `more`: how many others wait, for less long. */
export function writeWaiting(
  terminal: Terminal,
  waiting: readonly Waiting[],
  more: number,
  now: number,
): void {
  if (waiting.length === 0) return terminal.write('nobody waits');
  const rows = waiting.flatMap((each): Row[] => {
    const { approval, otherApprovals = [] } = each.task;
    return [approval ?? null, ...otherApprovals].map((open) => ({ ...each, approval: open }));
  });
  const [titles = '', ...lines] = tableLines(rows, columns(now), terminal.width);
  terminal.write(terminal.paint('dim', titles));
  for (const [index, line] of lines.entries()) {
    const { entry, approval } = rows[index] as Row;
    terminal.write(line);
    terminal.write(terminal.paint('dim', `  ${entry.taskId}  ${approval?.callId ?? ''}`.trimEnd()));
  }
  if (more > 0) terminal.write(`${more} more wait, for less long: --limit shows them`);
}

const columns = (now: number): Column<Row>[] => [
  {
    title: 'WAITING',
    cell: ({ entry, approval }) => humanDuration(now - (approval?.openedAt ?? entry.waitingSince)),
  },
  { title: 'BY', cell: requester, flexible: true, least: 4 },
  { title: 'CALL', cell: callOf, flexible: true },
  { title: 'FOR', cell: whomFor, flexible: true, least: 4 },
  { title: 'LEFT', cell: ({ approval }) => (approval ? humanDuration(approval.expiresAt - now) : '') },
];

function requester({ approval }: Row): string {
  const by = approval?.view['requester'];
  return typeof by === 'string' ? by : '';
}

/** The action with its arguments; of a procedure's own question what it shows. */
function callOf({ approval, entry }: Row): string {
  if (approval === null) return entry.action;
  const args = approval.view['arguments'] ?? null;
  const isGate = approval.action === APPROVAL_ACTION && typeof args === 'object' && 'view' in (args ?? {});
  const [name, shown] = isGate ? [entry.action, (args as { view: unknown }).view] : [approval.action, args];
  return `${name} ${JSON.stringify(shown)}`;
}

function whomFor({ approval, entry }: Row): string {
  if (approval === null) return entry.status === 'needs_attention' ? 'a resolution' : 'a decision';
  return approval.roles.length === 0 ? 'a decision' : approval.roles.join(' or ');
}
