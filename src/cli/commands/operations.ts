/** `holdfast migrate` and `holdfast doctor`. */
import { openLedger } from '../../ledger/open-ledger.ts';
import { migrate } from '../../../worker/index.ts';
import { examine } from '../doctor.ts';
import type { Finding } from '../doctor.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import { connectToTemporal, loadCommandConfig } from '../session.ts';
import { tableLines } from '../terminal.ts';

export function addOperationCommands({ program, run }: CommandSite): void {
  program
    .command('migrate')
    .description('bring the ledger’s schema and Temporal’s search attributes up to date; safe to repeat')
    .action(
      run(async (report, options) => {
        const config = await loadCommandConfig(options);
        const ledger = await openLedger({ url: config.databaseUrl });
        try {
          const connection = await connectToTemporal(config);
          try {
            const done = await migrate(ledger, connection, config.temporal.namespace);
            report.answer(done, (terminal) => {
              terminal.write(`ledger: version ${done.ledger.from} → ${done.ledger.to}`);
              terminal.write(
                `search attributes added: ${done.searchAttributes.join(', ') || 'none were missing'}`,
              );
            });
            return EXIT.done;
          } finally {
            await connection.close();
          }
        } finally {
          await ledger.close();
        }
      }),
    );
  program
    .command('doctor')
    .description('is everything as it should be: configuration, ledger, audit, Temporal, retention, workers')
    .action(
      run(async (report, options) => {
        const findings = await examine(options);
        report.answer(findings, (terminal) => {
          const columns = [
            { title: 'CHECK', cell: (finding: Finding) => finding.check },
            { title: '', cell: (finding: Finding) => finding.verdict },
            { title: 'FOUND', cell: (finding: Finding) => finding.found, flexible: true },
          ];
          for (const line of tableLines(findings, columns, terminal.width)) terminal.write(line);
          for (const finding of findings)
            if (finding.fix !== null) terminal.write(`${finding.check}: ${finding.fix}`);
        });
        return exitCodeOf(findings);
      }),
    );
}

function exitCodeOf(findings: readonly Finding[]): number {
  const isUnreachable = findings.some((finding) => finding.verdict === 'unreachable');
  if (isUnreachable) return EXIT.unreachable;
  return findings.some((finding) => finding.verdict === 'wrong') ? EXIT.failed : EXIT.done;
}
