/** The `holdfast` command line: which commands there are, and what happens when one throws. */
import { Command, CommanderError, Option } from 'commander';
import { HoldfastError } from '../contract/error.ts';
import { addAlertCommands } from './commands/alerts.ts';
import { addAuditCommands } from './commands/audit.ts';
import { addCallCommand } from './commands/call.ts';
import { addDemoCommand } from './commands/demo.ts';
import { addOperationCommands } from './commands/operations.ts';
import { addRehearseCommand } from './commands/rehearse.ts';
import { addRuleCommands } from './commands/rules.ts';
import { addServingCommands } from './commands/serving.ts';
import { addTaskCommands } from './commands/tasks.ts';
import { addUpstreamCommands } from './commands/upstream.ts';
import { EXIT } from './exit-code.ts';
import { openReport, reportError } from './report.ts';
import type { Report } from './report.ts';

/** Options every command takes. */
export interface GlobalOptions {
  config?: string;
  json?: boolean;
}

export interface CommandSite {
  program: Command;
  /** Wraps a command's body: prints what it throws and keeps its exit code. */
  run<Args extends unknown[]>(
    body: (report: Report, options: GlobalOptions, ...args: Args) => Promise<number>,
  ): (...args: Args) => Promise<void>;
}

/** Runs one command line; answers the exit code. */
export async function runProgram(argv: readonly string[]): Promise<number> {
  let exitCode: number = EXIT.done;
  dropEmptyVariables(process.env);
  const program = new Command('holdfast')
    .description('Tool calls that change the world, made safe to retry, cancel and undo.')
    .addOption(
      new Option(
        '--config <file>',
        'configuration file (default: holdfast.config.ts here, or HOLDFAST_CONFIG)',
      ),
    )
    .addOption(new Option('--json', 'one JSON object or array on standard output, for scripts'))
    .exitOverride()
    .showHelpAfterError('(holdfast --help lists the commands)');
  const site: CommandSite = {
    program,
    run:
      (body) =>
      async (...args) => {
        const options = globalOptions(argv, program);
        const report = openReport(options.json === true);
        try {
          exitCode = await body(report, options, ...args);
        } catch (error) {
          exitCode = reportError(error, report.isJson);
        }
      },
  };
  for (const add of [
    addServingCommands,
    addDemoCommand,
    addCallCommand,
    addTaskCommands,
    addAlertCommands,
    addRuleCommands,
    addAuditCommands,
    addRehearseCommand,
    addOperationCommands,
    addUpstreamCommands,
  ])
    add(site);
  shareGlobalOptions(program);
  try {
    await program.parseAsync([...argv], { from: 'user' });
  } catch (error) {
    const isJson = argv.includes('--json');
    if (!(error instanceof CommanderError)) return reportError(error, isJson);
    if (error.exitCode === 0) return EXIT.done;
    // For people commander has written it already, with what helps.
    if (isJson) reportError(wrongUsage(error), isJson);
    return EXIT.usage;
  }
  return exitCode;
}

/** A variable set to nothing counts as not set (docs/configuration.md), whoever reads it. */
function dropEmptyVariables(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(env))
    if (/^(HOLDFAST|TEMPORAL)_/.test(name) && env[name] === '') delete env[name];
}

const wrongUsage = ({ message }: CommanderError): HoldfastError =>
  new HoldfastError(
    'invalid_arguments',
    message.startsWith('error: ')
      ? message.slice('error: '.length)
      : 'No command was given; see holdfast --help.',
  );

/** `holdfast call x --json` reads as well as `holdfast --json call x`. */
function shareGlobalOptions(command: Command): void {
  for (const child of command.commands) {
    child.addOption(new Option('--config <file>').hideHelp()).addOption(new Option('--json').hideHelp());
    child.exitOverride();
    shareGlobalOptions(child);
  }
}

function globalOptions(argv: readonly string[], program: Command): GlobalOptions {
  const used = program.args.length === 0 ? program : deepest(program, argv);
  return used.optsWithGlobals<GlobalOptions>();
}

/** The sub-command that was called, so that its own `--json` counts too. */
function deepest(command: Command, argv: readonly string[]): Command {
  const child = command.commands.find(
    (one) => argv.includes(one.name()) && command.args.includes(one.name()),
  );
  return child ? deepest(child, argv) : command;
}
