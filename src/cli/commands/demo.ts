/** `holdfast demo`: real MCP calls through a real Temporal server to real targets, killed half-way, taking effect once. */
import type { ChapterResult, Performance } from '../demo/chapter.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import type { Report } from '../report.ts';
import { openTerminal, tableLines } from '../terminal.ts';
import type { Terminal } from '../terminal.ts';

export function addDemoCommand({ program, run }: CommandSite): void {
  program
    .command('demo')
    .description(
      'watch calls be retried, killed half-way, approved, given up, cancelled, and take effect once',
    )
    .action(run((report) => demo(report)));
}

/** Exit code 0 only if every chapter was as expected. */
async function demo(report: Report): Promise<number> {
  const terminal = report.isJson ? openTerminal(process.stderr) : report.terminal;
  const startedAt = Date.now();
  const say = (line: string): void =>
    terminal.write(`${terminal.paint('dim', clock(Date.now() - startedAt))}  ${line}`);
  // Loaded here: a chapter brings half the gateway.
  const [{ CHAPTERS }, { openStage }] = await Promise.all([
    import('../demo/chapters.ts'),
    import('../demo/stage.ts'),
  ]);
  const stage = await openStage(say);
  try {
    const performance: Performance = { stage, worker: await stage.startWorker(), say };
    say(`worker ${performance.worker.pid} is up`);
    const results: ChapterResult[] = [];
    for (const chapter of CHAPTERS) {
      const outcome = await chapter(performance);
      results.push(outcome);
      say(
        `${mark(terminal, outcome.isAsExpected)} ${terminal.paint('bold', outcome.chapter)}: ${outcome.seen}`,
      );
    }
    report.answer(results, () => closingTable(terminal, results));
    return results.every((outcome) => outcome.isAsExpected) ? EXIT.done : EXIT.failed;
  } finally {
    await stage.close();
  }
}

function closingTable(terminal: Terminal, results: readonly ChapterResult[]): void {
  const columns = [
    { title: '', cell: (row: ChapterResult) => (row.isAsExpected ? '✓' : '✗') },
    { title: 'CHAPTER', cell: (row: ChapterResult) => row.chapter },
    { title: 'SEEN', cell: (row: ChapterResult) => row.seen },
    { title: 'EXPECTED', cell: (row: ChapterResult) => row.expected, flexible: true },
  ];
  terminal.write('');
  for (const [index, line] of tableLines(results, columns, terminal.width).entries()) {
    terminal.write(index === 0 ? terminal.paint('dim', line) : line);
  }
}

function mark(terminal: Terminal, isAsExpected: boolean): string {
  return isAsExpected ? terminal.paint('green', '✓') : terminal.paint('red', '✗');
}

function clock(ms: number): string {
  return `${(ms / 1_000).toFixed(1).padStart(5)} s`;
}
