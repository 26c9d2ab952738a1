/** A task in words, for `call`, `tasks` and `task …`. */
import type { Json } from '../task/json.ts';
import type { TaskStatus } from '../task/outcome.ts';
import type { TaskAnswer, TaskDetail } from '../client/task-client.ts';
import { humanDuration, oneLine, tableLines } from './terminal.ts';
import type { Terminal } from './terminal.ts';
import { timelineOf } from './timeline.ts';
import { writeApproval } from './approval-lines.ts';

/** The object `call --json` prints; `task show --json` adds `events`, `attempts`, `approval` and `alerts`. */
export function answerJson(answer: TaskAnswer): Record<string, unknown> {
  const {
    taskId,
    operationId,
    action,
    status,
    effect,
    cause,
    replayed,
    attached,
    autoRetry,
    cancelRequested,
    result,
    error,
  } = answer;
  return {
    taskId,
    operationId,
    action,
    status,
    effect,
    cause,
    replayed,
    attached,
    autoRetry,
    cancelRequested,
    stale: answer.stale,
    result,
    error,
  };
}

/** What people are asked; `otherApprovals` only where a procedure asks several things at once. */
export const approvalsJson = ({ approval = null, otherApprovals = [] }: TaskAnswer) => ({
  approval,
  ...(otherApprovals.length > 0 && { otherApprovals }),
});

export function detailJson(detail: TaskDetail): Record<string, unknown> {
  const { events, attempts, steps, alerts, lateOutcome, nextEligibleAt, lastFailure } = detail;
  const more = steps.length > 0 ? { steps } : {};
  return {
    ...{ ...answerJson(detail), nextEligibleAt, lastFailure, lateOutcome, events, attempts, ...more },
    ...approvalsJson(detail),
    alerts,
  };
}

export function paintStatus(terminal: Terminal, status: TaskStatus): string {
  if (status === 'completed') return terminal.paint('green', status);
  if (status === 'failed' || status === 'needs_attention') return terminal.paint('red', status);
  return terminal.paint('yellow', status);
}

export function writeAnswer(terminal: Terminal, answer: TaskAnswer): void {
  const notes = [
    answer.replayed && 'replayed',
    answer.attached && 'attached',
    answer.stale && 'last known state',
  ].filter(Boolean);
  terminal.write(
    `${terminal.paint('bold', answer.action)}  ${paintStatus(terminal, answer.status)}  effect ${answer.effect ?? 'not known yet'}` +
      (notes.length > 0 ? `  (${notes.join(', ')})` : ''),
  );
  terminal.write(terminal.paint('dim', `  task ${answer.taskId}`));
  if (answer.result !== null) terminal.write(`  ${boundedJson(answer.result)}`);
  if (answer.error)
    terminal.write(`  ${terminal.paint('red', answer.error.code)}: ${oneLine(answer.error.message)}`);
  else if (answer.status !== 'completed') terminal.write(`  ${oneLine(answer.statusMessage)}`);
}

const RESULT_CHARACTERS_MAX = 2_000;

function boundedJson(value: Json): string {
  const text = oneLine(JSON.stringify(value));
  return text.length <= RESULT_CHARACTERS_MAX
    ? text
    : `${text.slice(0, RESULT_CHARACTERS_MAX)}… (--json shows all)`;
}

export function writeTasks(terminal: Terminal, tasks: readonly TaskAnswer[], now: number): void {
  if (tasks.length === 0) return terminal.write('no tasks');
  const columns = [
    { title: 'AGE', cell: (task: TaskAnswer) => humanDuration(now - task.createdAt) },
    { title: 'ACTION', cell: (task: TaskAnswer) => task.action, flexible: true },
    { title: 'STATUS', cell: (task: TaskAnswer) => task.status },
    { title: 'EFFECT', cell: (task: TaskAnswer) => task.effect ?? '?' },
    { title: 'CAUSE', cell: (task: TaskAnswer) => task.cause ?? '', flexible: true },
    { title: 'TASK', cell: (task: TaskAnswer) => task.taskId },
  ];
  for (const [index, line] of tableLines(tasks, columns, terminal.width).entries()) {
    terminal.write(index === 0 ? terminal.paint('dim', line) : line);
  }
}

export function writeTimeline(terminal: Terminal, detail: TaskDetail): void {
  writeAnswer(terminal, detail);
  if (detail.nextEligibleAt !== null)
    terminal.write(`  next try at ${new Date(detail.nextEligibleAt).toISOString()}`);
  if (detail.interrupted === true)
    terminal.write(terminal.paint('yellow', '  interrupted: nothing begins until it is resumed'));
  if (detail.lateOutcome !== null)
    terminal.write(`  ${terminal.paint('red', 'reported late')}: ${boundedJson(detail.lateOutcome)}`);
  for (const approval of detail.approval === null ? [] : [detail.approval, ...(detail.otherApprovals ?? [])])
    writeApproval(terminal, approval);
  terminal.write('');
  const columns = [
    { title: 'TIME', cell: (row: { at: number }) => new Date(row.at).toISOString().slice(11, 23) },
    { title: 'SINCE', cell: (row: { since: string }) => row.since },
    { title: 'WHAT', cell: (row: { what: string }) => row.what },
    { title: 'DETAIL', cell: (row: { detail: string }) => row.detail, flexible: true },
  ];
  const rows = timelineOf(detail.events);
  if (rows.length === 0)
    terminal.write(
      terminal.paint(
        'dim',
        'no worker could be asked for the journal, or it is past retention; `holdfast audit show` has the record',
      ),
    );
  else for (const line of tableLines(rows, columns, terminal.width)) terminal.write(line);
  for (const alert of detail.alerts) {
    terminal.write(`${terminal.paint('red', `alert ${alert.type}`)}: ${oneLine(alert.message)}`);
  }
}
