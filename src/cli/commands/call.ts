/** `holdfast call TOOL --args JSON [--key K] [--wait]`. */
import type { TaskAnswer } from '../../client/task-client.ts';
import { parseArgs } from '../arguments.ts';
import { exitCodeOfStatus } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import type { Report } from '../report.ts';
import { withSession } from '../session.ts';
import type { Session } from '../session.ts';
import { answerJson, writeAnswer } from '../task-lines.ts';
import { waitToEnd } from '../wait-to-end.ts';
import { isTerminal } from '../../task/outcome.ts';

interface CallOptions {
  args: string;
  key?: string;
  wait?: boolean;
  attach: boolean;
}

/** Without `--wait`: long enough to see a short action end, so that most calls print their result at once. */
const GLANCE_MS = 2_000;

export function addCallCommand({ program, run }: CommandSite): void {
  program
    .command('call <tool>')
    .description('call an action; with a key, calling again is safe')
    .option('--args <json>', 'arguments: a JSON object, @FILE, or - for standard input', '{}')
    .option('--key <key>', 'idempotency key: names the intent, for example an order id')
    .option('--wait', 'wait until the task has ended or needs a person')
    .option('--no-attach', 'without a key: do not meet an open call with the same arguments')
    .action(
      run(async (report, options, tool: string, given: CallOptions) =>
        withSession(options, (session) => call(report, session, tool, given)),
      ),
    );
}

async function call(report: Report, session: Session, tool: string, given: CallOptions): Promise<number> {
  const { client, principal, upstreams } = session;
  const started = await client.start({
    action: upstreams.actionOf(tool),
    args: parseArgs(given.args),
    principal,
    attach: given.attach,
    ...(given.key !== undefined && { key: given.key }),
  });
  const answer = await ended(session, started, given.wait === true, report);
  report.answer(answerJson(answer), (terminal) => {
    writeAnswer(terminal, answer);
    if (!isTerminal(answer.status))
      terminal.write(terminal.paint('dim', `  it goes on: holdfast task watch ${answer.taskId}`));
  });
  return exitCodeOfStatus(answer.status);
}

async function ended(
  session: Session,
  started: TaskAnswer,
  isPatient: boolean,
  report: Report,
): Promise<TaskAnswer> {
  if (isTerminal(started.status)) return started;
  if (isPatient) {
    const after = await waitToEnd(session, started.taskId, report);
    return { ...after, replayed: after.replayed || started.replayed, attached: started.attached };
  }
  const after = await session.client.wait(started.taskId, session.principal, { timeoutMs: GLANCE_MS });
  return { ...after, replayed: after.replayed || started.replayed, attached: started.attached };
}
