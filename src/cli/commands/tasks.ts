/** `holdfast tasks` and `holdfast task show|watch|cancel|resolve ID`. */
import { InvalidArgumentError } from 'commander';
import { HoldfastError } from '../../contract/error.ts';
import { WAITING_READ_MAX } from '../../client/engine.ts';
import type { HoldfastClient } from '../../client/index.ts';
import type { ResolutionInput } from '../../client/task-client.ts';
import type { Principal } from '../../task/plan.ts';
import { parseChoice, parseCount, parseJsonOption } from '../arguments.ts';
import { EXIT, exitCodeOfStatus } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import { addDecisionCommands } from './decisions.ts';
import { waitingJson, writeWaiting } from '../inbox-lines.ts';
import type { Report } from '../report.ts';
import { withSession } from '../session.ts';
import {
  answerJson,
  detailJson,
  paintStatus,
  writeAnswer,
  writeTasks,
  writeTimeline,
} from '../task-lines.ts';
import { waitToEnd } from '../wait-to-end.ts';

const LIST_MAXIMUM = 1_000;
/** What the ledger's rows can tell apart, and those that wait for a person, of whom the engine knows. */
const LISTED = [
  'open',
  'proposed',
  'running',
  'verifying',
  'backing_off',
  'rolling_back',
  'needs_attention',
  'completed',
  'failed',
  'cancelled',
  'awaiting_approval',
  'input_required',
];
const AWAITED = new Set(['awaiting_approval', 'input_required']);

export function addTaskCommands(site: CommandSite): void {
  addList(site);
  const task = site.program
    .command('task')
    .description('one task: show, watch, approve, edit, reject, cancel, interrupt, resume, resolve');
  addShow(site, task);
  addCancel(site, task);
  addResolve(site, task);
  addDecisionCommands(site, task);
}

function addList({ program, run }: CommandSite): void {
  program
    .command('tasks')
    .description('list tasks, newest first')
    .option(
      '--status <status>',
      'only these: open, a status such as needs_attention, or input_required: all that wait for a person',
    )
    .option('--action <name>', 'only calls of this action')
    .option('--limit <n>', `how many, at most ${LIST_MAXIMUM}`, '50')
    .action(
      run(async (report, options, given: { status?: string; action?: string; limit: string }) =>
        withSession(options, async ({ client, principal }) => {
          const limit = parseCount('--limit', given.limit, LIST_MAXIMUM);
          if (given.status !== undefined) parseChoice('--status', given.status, LISTED);
          if (AWAITED.has(given.status ?? '')) return listWaiting(report, client, principal, limit, given);
          const tasks = await client.list(principal, {
            limit,
            ...(given.status !== undefined && { status: given.status }),
            ...(given.action !== undefined && { action: given.action }),
          });
          report.answer(tasks.map(answerJson), (terminal) => {
            writeTasks(terminal, tasks, Date.now());
            if (tasks.length === limit) terminal.write(`the newest ${limit}; --limit shows more`);
          });
          return EXIT.done;
        }),
      ),
    );
}

/** Asked of each task itself: only it knows what it waits for, of whom, and until when. */
async function listWaiting(
  report: Report,
  client: HoldfastClient,
  principal: Principal,
  limit: number,
  { status, action }: { status?: string; action?: string },
): Promise<number> {
  const entries = (await client.inbox(principal, { limit: WAITING_READ_MAX })).filter(
    (entry) =>
      (action === undefined || entry.action === action) &&
      (status === 'input_required' || entry.status === status),
  );
  const waiting = await Promise.all(
    entries
      .slice(0, limit)
      .map(async (entry) => ({ entry, task: await client.get(entry.taskId, principal) })),
  );
  report.answer(waiting.map(waitingJson), (terminal) =>
    writeWaiting(terminal, waiting, entries.length - waiting.length, Date.now()),
  );
  return EXIT.done;
}

type Group = CommandSite['program'];

async function shownTask(
  client: HoldfastClient,
  principal: Principal,
  id: string | undefined,
  { tool, key }: { tool?: string; key?: string },
): Promise<string> {
  if (id !== undefined && tool === undefined && key === undefined) return id;
  if (id !== undefined || tool === undefined || key === undefined)
    throw new HoldfastError('invalid_arguments', 'Give either an id, or --tool and --key together.');
  return (await client.find({ action: tool, key, principal })).taskId;
}

function addShow({ run }: CommandSite, task: Group): void {
  task
    .command('show [id]')
    .description('what was checked, sent, verified, retried and undone, and when')
    .option('--tool <name>', 'in place of the id, with --key: the tool that was called')
    .option('--key <key>', 'the idempotency key of that call')
    .action(
      run(async (report, options, id: string | undefined, given: { tool?: string; key?: string }) =>
        withSession(options, async ({ client, principal }) => {
          const detail = await client.detail(await shownTask(client, principal, id, given), principal);
          report.answer(detailJson(detail), (terminal) => writeTimeline(terminal, detail));
          return EXIT.done;
        }),
      ),
    );
  task
    .command('watch <id>')
    .description('follow a task until it has ended or needs a person')
    .action(
      run(async (report, options, id: string) =>
        withSession(options, async (session) => {
          const answer = await waitToEnd(session, id, report);
          report.answer(answerJson(answer), (terminal) => writeAnswer(terminal, answer));
          return exitCodeOfStatus(answer.status);
        }),
      ),
    );
}

function addCancel({ run }: CommandSite, task: Group): void {
  task
    .command('cancel <id>')
    .description('ask a task to stop; answers "requested", and the task says what became of it')
    .option('--reason <text>', 'kept in the journal')
    .option('--wait', 'wait until the task has ended')
    .action(
      run(async (report, options, id: string, given: { reason?: string; wait?: boolean }) =>
        withSession(options, async (session) => {
          const { client, principal } = session;
          const reply = await client.cancel(id, principal, given.reason);
          if (given.wait !== true) {
            report.answer({ taskId: id, ...reply }, (terminal) =>
              terminal.write(reply.accepted ? 'requested' : reply.code),
            );
            return EXIT.done;
          }
          if (!report.isJson) report.terminal.write(reply.accepted ? 'requested' : reply.code);
          const answer = await waitToEnd(session, id, report);
          report.answer(answerJson(answer), (terminal) => writeAnswer(terminal, answer));
          return answer.status === 'cancelled' || answer.status === 'completed'
            ? EXIT.done
            : exitCodeOfStatus(answer.status);
        }),
      ),
    );
}

interface ResolveOptions {
  as: ResolutionInput['as'];
  result?: string;
  note?: string;
  step?: string;
}

function parseResolution(text: string): ResolutionInput['as'] {
  if (text === 'applied' || text === 'not_applied' || text === 'abandoned') return text;
  throw new InvalidArgumentError('Write applied, not_applied or abandoned.');
}

function addResolve({ run }: CommandSite, task: Group): void {
  task
    .command('resolve <id>')
    .description('say what happened, for a task in needs_attention')
    .requiredOption('--as <what>', 'applied, not_applied or abandoned', parseResolution)
    .option('--result <json>', 'with applied: the result, where the ledger has none')
    .option('--step <name>', 'of a procedure: the step it is about, where several wait for a person')
    .option('--note <text>', 'why; kept in the audit')
    .action(
      run(async (report, options, id: string, given: ResolveOptions) =>
        withSession(options, async ({ client, principal }) => {
          const common = {
            ...(given.note !== undefined && { note: given.note }),
            ...(given.step !== undefined && { step: given.step }),
          };
          const result =
            given.result === undefined ? {} : { result: parseJsonOption('--result', given.result) };
          const resolution: ResolutionInput =
            given.as === 'applied' ? { as: 'applied', ...result, ...common } : { as: given.as, ...common };
          const reply = await client.resolve(id, principal, resolution);
          report.answer({ taskId: id, ...reply }, (terminal) =>
            terminal.write(
              reply.accepted
                ? `requested; the task is ${paintStatus(terminal, 'running')} again: holdfast task watch ${id}`
                : reply.code,
            ),
          );
          return reply.accepted ? EXIT.done : EXIT.failed;
        }),
      ),
    );
}
