/** `holdfast upstream check [NAME]`: asks each configured server for its tools, and says what each gets and what is missing. */
import { HoldfastError } from '../../contract/error.ts';
import { reportOf } from '../../upstream/check-upstream.ts';
import type { ToolReport } from '../../upstream/check-upstream.ts';
import { createLogger, openUnkeptUpstreams } from '../../../worker/index.ts';
import type { Config } from '../../../worker/index.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import { loadCommandConfig } from '../session.ts';
import { writeServer } from '../upstream-lines.ts';
import type { ServerReport } from '../upstream-lines.ts';

export function addUpstreamCommands({ program, run }: CommandSite): void {
  const upstream = program.command('upstream').description('other people’s MCP servers');
  upstream
    .command('check [name]')
    .description('what each tool of each server, or of one, gets from the configuration, and what is missing')
    .action(
      run(async (report, options, name: string | undefined) => {
        const reports = await checkUpstreams(await loadCommandConfig(options), name);
        report.answer(reports, (terminal) => {
          for (const one of reports) writeServer(terminal, one);
          if (reports.length === 0) terminal.write('no upstreams in the configuration');
        });
        return reports.every(isRight) ? EXIT.done : EXIT.failed;
      }),
    );
}

const isRight = ({ wrong, tools }: ServerReport): boolean =>
  wrong.length === 0 && tools.every((tool) => tool.wrong.length === 0);

async function checkUpstreams(config: Config, name?: string): Promise<ServerReport[]> {
  const chosen = config.upstreams.filter((one) => name === undefined || one.name === name);
  if (name !== undefined && chosen.length === 0)
    throw new HoldfastError('invalid_arguments', `No upstream named ${name} is configured.`);
  const log = createLogger({ level: 'silent' });
  const upstreams = await openUnkeptUpstreams({ ...config, upstreams: chosen }, log);
  try {
    return upstreams.servers.map((server) => ({
      server: server.name,
      wrong: upstreams.problems
        .filter(({ server: of, tool }) => of === server.name && !isOfListed(server.compiled?.tools, tool))
        .map(({ error }) => error.message),
      tools: (server.compiled?.tools ?? []).map((entry) =>
        withProblems(reportOf(entry), upstreams.problems, server.name),
      ),
    }));
  } finally {
    await upstreams.close();
  }
}

const isOfListed = (tools: readonly { tool: { name: string } }[] | undefined, name: string | null): boolean =>
  tools?.some(({ tool }) => tool.name === name) === true;

/** A name that is taken, or a key that is missing, is found only where all tools come together. */
function withProblems(
  report: ToolReport,
  problems: readonly { server: string; tool: string | null; error: HoldfastError }[],
  server: string,
): ToolReport {
  const more = problems.filter((one) => one.server === server && one.tool === report.tool);
  return report.wrong.length > 0 ? report : { ...report, wrong: more.map(({ error }) => error.message) };
}
