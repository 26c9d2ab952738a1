/** `holdfast task approve|edit|reject|interrupt|resume ID`: people in control (S4, S7.1). */
import { createInterface } from 'node:readline/promises';
import type { ApprovalView, DecisionAnswer, DecisionInput } from '../../client/task-client.ts';
import { parseArgs } from '../arguments.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import type { Report } from '../report.ts';
import { withSession } from '../session.ts';
import type { Session } from '../session.ts';
import { writeApproval } from '../approval-lines.ts';
import { oneLine } from '../terminal.ts';
import type { Terminal } from '../terminal.ts';

type Group = CommandSite['program'];
interface DecideOptions {
  call?: string;
  reason?: string;
  args?: string;
  phrase?: string;
}

export function addDecisionCommands(site: CommandSite, task: Group): void {
  addDecision(site, task, 'approve', 'let the call go ahead as it is shown');
  addDecision(site, task, 'edit', 'let it go ahead with other arguments; policy for them is asked again');
  addDecision(site, task, 'reject', 'refuse it; nothing is sent');
  addPause(site, task, 'interrupt', 'pause a task whatever it is doing; an effect under way finishes');
  addPause(site, task, 'resume', 'let an interrupted task go on');
}

function addDecision(
  { run }: CommandSite,
  task: Group,
  kind: DecisionInput['kind'],
  description: string,
): void {
  const command = task
    .command(`${kind} <id>`)
    .description(description)
    .option('--call <callId>', 'the approval this is about; default: the one that is open')
    .option('--reason <text>', 'kept in journal and audit');
  if (kind === 'edit')
    command.requiredOption('--args <json>', 'the new arguments: a JSON object, @FILE, or -');
  if (kind === 'approve')
    command.option('--phrase <text>', 'the phrase an irreversible action asks for; asked for on a terminal');
  command.action(
    run(async (report, options, id: string, given: DecideOptions) =>
      withSession(options, async (session) => {
        const answer = await decide(report, session, id, kind, given);
        report.answer({ taskId: id, ...answer }, (terminal) => writeDecision(terminal, answer));
        return answer.accepted ? EXIT.done : EXIT.failed;
      }),
    ),
  );
}

async function decide(
  report: Report,
  { client, principal }: Session,
  id: string,
  kind: DecisionInput['kind'],
  given: DecideOptions,
): Promise<DecisionAnswer> {
  const { approval } = await client.detail(id, principal);
  if (approval !== null && !report.isJson) writeApproval(report.terminal, approval);
  const phrase = kind === 'approve' ? (given.phrase ?? (await askPhrase(approval))) : undefined;
  return client.decide(id, principal, {
    kind,
    // Bound to what was shown: a call that changed meanwhile is not decided by this (S4.1).
    ...(given.call === undefined &&
      approval !== null && { callId: approval.callId, fingerprint: approval.fingerprint }),
    ...(given.call !== undefined && { callId: given.call }),
    ...(given.reason !== undefined && { reason: given.reason }),
    ...(given.args !== undefined && { arguments: parseArgs(given.args) }),
    ...(phrase !== undefined && { challengeAnswer: phrase }),
  });
}

/** S4.6: the phrase is typed, not confirmed; scripts pass `--phrase`. */
async function askPhrase(approval: ApprovalView | null): Promise<string | undefined> {
  if (approval?.challenge == null || process.stdin.isTTY !== true) return undefined;
  const prompt = createInterface({ input: process.stdin, output: process.stderr });
  try {
    return await prompt.question(`This can not be undone. Type: ${oneLine(approval.challenge)}\n> `);
  } finally {
    prompt.close();
  }
}

function writeDecision(terminal: Terminal, answer: DecisionAnswer): void {
  terminal.write(
    `${terminal.paint(answer.accepted ? 'green' : 'red', answer.code)}  ${oneLine(answer.message ?? '')}`.trimEnd(),
  );
}

function addPause(
  { run }: CommandSite,
  task: Group,
  kind: 'interrupt' | 'resume',
  description: string,
): void {
  task
    .command(`${kind} <id>`)
    .description(description)
    .option('--reason <text>', 'kept in journal and audit')
    .action(
      run(async (report, options, id: string, given: { reason?: string }) =>
        withSession(options, async ({ client, principal }) => {
          const reply =
            kind === 'interrupt'
              ? await client.interrupt(id, principal, given.reason)
              : await client.resume(id, principal);
          report.answer({ taskId: id, ...reply }, (terminal) =>
            terminal.write(reply.accepted ? 'requested' : reply.code),
          );
          return reply.accepted ? EXIT.done : EXIT.failed;
        }),
      ),
    );
}
