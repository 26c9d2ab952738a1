/** Waits for a task as a person does: a line whenever it changes, until it ended or needs somebody. */
import type { TaskAnswer } from '../client/task-client.ts';
import { openTerminal } from './terminal.ts';
import type { Report } from './report.ts';
import type { Session } from './session.ts';
import { paintStatus } from './task-lines.ts';
import { isTerminal } from '../task/outcome.ts';

/** One wait; the loop goes on for as long as the task does. */
const ONE_WAIT_MS = 60_000;

export async function waitToEnd(session: Session, taskId: string, report: Report): Promise<TaskAnswer> {
  const progress = openTerminal(process.stderr);
  let shown = '';
  const show = (answer: TaskAnswer): void => {
    const line = `${answer.status} ${answer.statusMessage}`;
    if (report.isJson || line === shown) return;
    shown = line;
    progress.write(
      `${new Date().toISOString().slice(11, 19)}  ${paintStatus(progress, answer.status)}  ${answer.statusMessage}`,
    );
  };
  for (;;) {
    const answer = await session.client.wait(taskId, session.principal, {
      timeoutMs: ONE_WAIT_MS,
      onChange: show,
    });
    show(answer);
    if (isTerminal(answer.status) || answer.status === 'needs_attention') return answer;
    if (answer.status === 'awaiting_approval' && !answer.cancelRequested) return answer;
  }
}
