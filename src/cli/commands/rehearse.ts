/** `holdfast rehearse ACTION|PROCEDURE --args JSON`: the user's handlers against their test target, through everything that can go wrong (S6.6). */
import { mkdirSync, writeFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import { HoldfastError } from '../../contract/error.ts';
import { loadConfig } from '../../../worker/index.ts';
import type { Config } from '../../../worker/index.ts';
import type { RehearsalReport, ScenarioReport } from '../../testing/index.ts';
import { parseArgs, parseCount } from '../arguments.ts';
import { withReason } from '../dev-engine.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite, GlobalOptions } from '../program.ts';
import type { Report } from '../report.ts';
import { humanDuration, oneLine, openTerminal, tableLines } from '../terminal.ts';
import type { Terminal } from '../terminal.ts';

/** Loaded by this command alone: no other needs a test server. */
const testing = () => import('../../testing/index.ts');

interface RehearseCommandOptions {
  args?: string;
  out?: string;
  only?: string;
  atOnce?: string;
  store?: string;
}

const AT_ONCE_MAX = 32;
/** More scenarios that were left out for one reason are only counted; the report names each. */
const NAMED_MAX = 6;

export function addRehearseCommand({ program, run }: CommandSite): void {
  program
    .command('rehearse <name>')
    .description(
      'crash, lose, approve, interrupt, cancel and repeat an action or a procedure against your test target, and let it count',
    )
    .option(
      '--args <json>',
      'arguments: a JSON object, @FILE, or - for standard input (default: the rehearsal’s own)',
    )
    .option('--out <dir>', 'write rehearsal.md, rehearsal.json and rehearsal-audit.jsonl there')
    .option('--only <text>', 'only scenarios whose group or name contains this')
    .option(
      '--at-once <n>',
      `operations at a time, at most ${AT_ONCE_MAX}; 1 where they get in each other’s way`,
    )
    .option(
      '--store <url>',
      'ledger for the rehearsal, for example a PostgreSQL of its own (default: a new SQLite file)',
    )
    .action(
      run(async (report, options, name: string, given: RehearseCommandOptions) => {
        const config = await rehearsalConfig(options);
        const found = await rehearsed(report, config, name, given);
        if (given.out !== undefined) await writeOut(given.out, found);
        const { audit: _inItsOwnFile, ...printed } = found;
        report.answer(printed, (terminal) => {
          writeFound(terminal, found);
          if (given.out !== undefined) terminal.write(`written: ${given.out}`);
        });
        return found.ok ? EXIT.done : EXIT.failed;
      }),
    );
}

/** Nothing of the user's own ledger is read, so no key of theirs is needed. */
function rehearsalConfig({ config: file }: GlobalOptions): Promise<Config> {
  const keyOf = () => randomBytes(32).toString('base64');
  return loadConfig({ keyOf, ...(file !== undefined && { file }) });
}

async function rehearsed(
  report: Report,
  config: Config,
  name: string,
  given: RehearseCommandOptions,
): Promise<RehearsalReport> {
  const { actions, file } = config;
  const { rehearse, rehearseProcedure } = await testing();
  const options = {
    onScenario: progressOf(report),
    ...(file.setup && { setup: file.setup }),
    ...(given.only !== undefined && { only: given.only }),
    ...(given.store !== undefined && { store: given.store }),
    ...(given.atOnce !== undefined && { atOnce: parseCount('--at-once', given.atOnce, AT_ONCE_MAX) }),
  };
  const args = given.args === undefined ? {} : { args: parseArgs(given.args) };
  const action = actions.find(({ contract }) => contract.name === name);
  if (action) return rehearse(action, { ...options, ...args }).catch(withReason);
  const { contracts = [], code = '' } = config.procedures ?? {};
  const procedure = contracts.find(({ contract }) => contract.name === name);
  if (procedure)
    return rehearseProcedure(procedure, { args: {}, ...options, ...args, actions, code }).catch(withReason);
  throw unknownName(config, name);
}

function unknownName({ actions, procedures, configFile }: Config, name: string): HoldfastError {
  const known = [...actions, ...(procedures?.contracts ?? [])]
    .map(({ contract }) => contract.name)
    .join(', ');
  return new HoldfastError(
    'unknown_action',
    `No action or procedure named ${JSON.stringify(name.slice(0, 64))} in ${configFile ?? 'the configuration, of which there is none'}; there are: ${known || 'none'}.`,
  );
}

/** A line for each scenario as it ends, on standard error. */
function progressOf(report: Report) {
  const progress = openTerminal(process.stderr);
  return ({ scenario, verdict }: ScenarioReport, done: number, of: number): void => {
    if (report.isJson) return;
    const mark = verdict === 'kept' ? progress.paint('green', '✓') : progress.paint('red', '✗');
    progress.write(`${progress.paint('dim', `${done}/${of}`.padStart(6))}  ${mark} ${scenario}`);
  };
}

async function writeOut(folder: string, found: RehearsalReport): Promise<void> {
  const { rehearsalMarkdown } = await testing();
  const { audit, ...report } = found;
  mkdirSync(folder, { recursive: true });
  const write = (name: string, text: string): void =>
    writeFileSync(join(folder, name), text, { mode: 0o600 });
  write('rehearsal.md', rehearsalMarkdown(found));
  write('rehearsal.json', `${JSON.stringify(report, null, 2)}\n`);
  write('rehearsal-audit.jsonl', audit.map((entry) => `${JSON.stringify(entry)}\n`).join(''));
}

const COLUMNS = [
  { title: 'SCENARIO', cell: ({ scenario }: ScenarioReport) => scenario, flexible: true },
  { title: 'EFFECTS', cell: ({ effects }: ScenarioReport) => counted(effects) },
  { title: 'UNDONE', cell: ({ undone }: ScenarioReport) => counted(undone) },
  { title: 'END', cell: ({ end }: ScenarioReport) => end },
  { title: 'AUDIT', cell: ({ audit }: ScenarioReport) => (audit.intact ? 'intact' : 'BROKEN') },
  { title: 'PROMISE', cell: ({ verdict }: ScenarioReport) => (verdict === 'kept' ? 'kept' : 'BROKEN') },
];

const counted = (count: number | null): string => (count === null ? '-' : String(count));

function writeFound(terminal: Terminal, found: RehearsalReport): void {
  const { scenarios, skipped, broken, notes, ok, durationMs } = found;
  const [head = '', ...lines] = tableLines(scenarios, COLUMNS, terminal.width);
  terminal.write(terminal.paint('dim', head));
  for (const [index, line] of lines.entries())
    terminal.write(scenarios[index]?.verdict === 'kept' ? line : terminal.paint('red', line));
  terminal.write('');
  for (const promise of broken) terminal.write(`${terminal.paint('red', 'broken')}  ${oneLine(promise)}`);
  for (const [reason, names] of byReason(skipped)) {
    const which = names.length > NAMED_MAX ? `${names.length} scenarios` : names.join('; ');
    terminal.write(terminal.paint('dim', `not rehearsed (${oneLine(reason)}): ${which}`));
  }
  for (const note of notes) terminal.write(terminal.paint('yellow', oneLine(note)));
  const verdict = ok
    ? terminal.paint('green', 'every promise kept')
    : terminal.paint('red', `${broken.length} promises broken`);
  terminal.write(`${verdict} in ${scenarios.length} scenarios, ${humanDuration(durationMs)}`);
}

function byReason(skipped: RehearsalReport['skipped']): Map<string, string[]> {
  const names = new Map<string, string[]>();
  for (const { scenario, reason } of skipped) names.set(reason, [...(names.get(reason) ?? []), scenario]);
  return names;
}
