/** `holdfast audit show|export|verify`: who asked, what was checked, sent, verified, undone, when, by which version (S10.4). */
import { createWriteStream, readFileSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { HoldfastError } from '../../contract/error.ts';
import { verifyAuditExport } from '../../ledger/audit-export.ts';
import type { AuditEntry } from '../../ledger/ledger.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import { withLedger } from '../session.ts';
import { oneLine, tableLines } from '../terminal.ts';

export function addAuditCommands(site: CommandSite): void {
  const audit = site.program
    .command('audit')
    .description('the append-only, hash-chained record: show, export, verify');
  addShow(site, audit);
  addExport(site, audit);
  addVerify(site, audit);
}

type Group = CommandSite['program'];

function addShow({ run }: CommandSite, audit: Group): void {
  audit
    .command('show <task>')
    .description('one task’s entries, in order')
    .action(
      run(async (report, options, task: string) =>
        withLedger(options, async ({ ledger, principal }) => {
          const entries = (await ledger.audit({ taskId: task })).filter(
            (entry) => entry.tenant === principal.tenant,
          );
          if (entries.length === 0)
            throw new HoldfastError('task_not_found', 'There is no task of that id that you may see.');
          report.answer(entries, (terminal) => {
            for (const line of tableLines(entries, COLUMNS, terminal.width)) terminal.write(line);
          });
          return EXIT.done;
        }),
      ),
    );
}

function addExport({ run }: CommandSite, audit: Group): void {
  audit
    .command('export')
    .description('every entry of the tenant as JSON lines, for keeping and for verifying elsewhere')
    .option('--out <file>', 'write here instead of standard output')
    .action(
      run(async (report, options, given: { out?: string }) =>
        withLedger(options, async ({ ledger, principal }) => {
          const chains = ledger.auditChains(principal.tenant);
          if (given.out === undefined) {
            await pipeline(jsonLines(chains), process.stdout, { end: false });
            return EXIT.done;
          }
          let entries = 0;
          const counted = jsonLines(chains, () => (entries += 1));
          await pipeline(counted, createWriteStream(given.out, { mode: 0o600 }));
          report.answer({ entries, file: given.out }, (terminal) =>
            terminal.write(`${entries} entries in ${given.out}`),
          );
          return EXIT.done;
        }),
      ),
    );
}

/** A chain at a time, as fast as it is taken: no export is held in memory. */
async function* jsonLines(chains: AsyncIterable<AuditEntry[]>, each?: () => void): AsyncGenerator<string> {
  for await (const chain of chains) {
    for (const _ of chain) each?.();
    yield chain.map((entry) => `${JSON.stringify(entry)}\n`).join('');
  }
}

function addVerify({ run }: CommandSite, audit: Group): void {
  audit
    .command('verify')
    .description('check every chain in the ledger, or in an exported file without any database')
    .option('--file <file>', 'an export; nothing else is read')
    .action(
      run(async (report, options, given: { file?: string }) => {
        const verdict =
          given.file === undefined
            ? await withLedger(options, ({ ledger }) => ledger.verifyAudit())
            : verifyAuditExport(readExport(given.file));
        if (!verdict.ok) {
          throw new HoldfastError(
            'audit_broken',
            `Task ${verdict.taskId}, entry ${verdict.seq}: ${verdict.reason}`,
            {
              details: { taskId: verdict.taskId, seq: verdict.seq },
            },
          );
        }
        report.answer(verdict, (terminal) =>
          terminal.write(
            `${terminal.paint('green', 'intact')}: ${verdict.entries} entries in ${verdict.tasks} chains`,
          ),
        );
        return EXIT.done;
      }),
    );
}

const COLUMNS = [
  { title: 'SEQ', cell: (entry: AuditEntry) => String(entry.seq) },
  { title: 'AT', cell: (entry: AuditEntry) => entry.at },
  { title: 'TYPE', cell: (entry: AuditEntry) => entry.type },
  { title: 'DATA', cell: (entry: AuditEntry) => oneLine(JSON.stringify(entry.data)), flexible: true },
  { title: 'HASH', cell: (entry: AuditEntry) => entry.hash.slice(0, 12) },
];

/** Whether what it says is true is for the chain; here only that it is an entry at all. */
function readEntry(line: string): AuditEntry {
  const entry = JSON.parse(line) as AuditEntry | null;
  const texts = [entry?.taskId, entry?.operationId, entry?.tenant, entry?.at, entry?.type, entry?.hash];
  const isEntry =
    texts.every((text) => typeof text === 'string') &&
    Number.isSafeInteger(entry?.seq) &&
    typeof entry?.data === 'object';
  if (!isEntry || entry === null) throw new Error('no entry of an audit');
  return entry;
}

function readExport(file: string): AuditEntry[] {
  try {
    const lines = readFileSync(file, 'utf8').split('\n');
    return lines.filter((line) => line.trim() !== '').map(readEntry);
  } catch {
    const expected = 'a file written by `holdfast audit export`';
    throw new HoldfastError('invalid_arguments', `--file must be ${expected}.`, {
      details: { option: '--file', expected },
    });
  }
}
