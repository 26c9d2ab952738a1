/** `holdfast task approve|edit|reject|interrupt|resume ID`: people in control (S4, S7.1). */
import { createInterface } from 'node:readline/promises';
import type { RuleInput } from '../../client/standing-rulebook.ts';
import type { ApprovalView, DecisionAnswer, DecisionInput, TaskDetail } from '../../client/task-client.ts';
import type { Duration } from '../../contract/duration.ts';
import { HoldfastError } from '../../contract/error.ts';
import { APPROVAL_ACTION } from '../../task/approval.ts';
import type { StandingRule } from '../../contract/standing-rule.ts';
import { parseArgs } from '../arguments.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import type { Report } from '../report.ts';
import { WHEN_OPTION, collected, coverageOf } from './rules.ts';
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
  always?: boolean;
  when?: string[];
  for?: string;
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
    command
      .option('--phrase <text>', 'the phrase an irreversible action asks for; asked for on a terminal')
      .option('--always', 'make a standing rule of it too, for exactly these arguments or what --when says')
      .option('--when <comparison>', `with --always: ${WHEN_OPTION}`, collected)
      .option('--for <duration>', 'with --always: how long the rule stands (default 30d)');
  command.action(
    run(async (report, options, id: string, given: DecideOptions) =>
      withSession(options, async (session) => {
        const shown = about(
          await session.client.detail(id, session.principal, { awaitsWorker: true }),
          given.call,
        );
        const rule = given.always === true ? ruleFrom(shown, given) : null;
        if (rule !== null) session.client.checkRule(rule);
        const answer = await decide(report, session, shown, kind, given);
        // Only what was taken is allowed again: a rule follows the approval that it is made from.
        const made =
          rule !== null && answer.accepted ? await session.client.allow(session.principal, rule) : null;
        report.answer({ taskId: id, ...answer, ...(made && { rule: made }) }, (terminal) =>
          writeDecision(terminal, answer, made),
        );
        return answer.accepted ? EXIT.done : EXIT.failed;
      }),
    ),
  );
}

/** Where a procedure asks several things at once, the one that was named is the one shown and decided. */
function about(task: TaskDetail, callId: string | undefined): TaskDetail {
  const named = task.otherApprovals?.find((each) => each.callId === callId);
  return named === undefined ? task : { ...task, approval: named };
}

/** What `--always` allows, checked before anything is decided. */
function ruleFrom({ taskId, approval }: TaskDetail, given: DecideOptions): RuleInput {
  if (approval === null)
    throw new HoldfastError(
      'approval_not_open',
      'No approval of this task is open just now, so --always has no call to cover.',
    );
  if (approval.challenge !== null)
    throw new HoldfastError(
      'invalid_standing_rule',
      'No standing rule answers a challenge: this call is decided each time.',
    );
  if (approval.action === APPROVAL_ACTION)
    throw new HoldfastError(
      'invalid_standing_rule',
      'No standing rule answers a question of a procedure’s own: this one is decided each time.',
    );
  return {
    ...{ action: approval.action, taskId },
    covers:
      given.when === undefined ? { kind: 'call', fingerprint: approval.fingerprint } : coverageOf(given.when),
    ...(given.for !== undefined && { expiresIn: given.for as Duration }),
    ...(given.reason !== undefined && { reason: given.reason }),
  };
}

async function decide(
  report: Report,
  { client, principal }: Session,
  { taskId, approval }: TaskDetail,
  kind: DecisionInput['kind'],
  given: DecideOptions,
): Promise<DecisionAnswer> {
  if (approval !== null && !report.isJson) writeApproval(report.terminal, approval);
  const phrase = kind === 'approve' ? (given.phrase ?? (await askPhrase(approval))) : undefined;
  return client.decide(taskId, principal, {
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

function writeDecision(terminal: Terminal, answer: DecisionAnswer, rule: StandingRule | null): void {
  terminal.write(
    `${terminal.paint(answer.accepted ? 'green' : 'red', answer.code)}  ${oneLine(answer.message ?? '')}`.trimEnd(),
  );
  if (rule !== null)
    terminal.write(`from now on allowed by ${rule.id}, until ${new Date(rule.expiresAt).toISOString()}`);
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
