/** `holdfast alerts` and `holdfast alerts retry`: what people were told, or could not be, and telling them again (S9). */
import { HoldfastError } from '../../contract/error.ts';
import type { AlertState, StoredAlert } from '../../ledger/ledger.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import { withLedger } from '../session.ts';
import { oneLine } from '../terminal.ts';
import type { Terminal } from '../terminal.ts';

const LISTED_MAX = 1_000;

interface Listing {
  dead?: boolean;
  waiting?: boolean;
  task?: string;
}

export function addAlertCommands({ program, run }: CommandSite): void {
  const alerts = program
    .command('alerts')
    .description('alerts, newest first, and what became of their delivery')
    .option('--dead', 'only dead letters: given up after too many tries')
    .option('--waiting', 'only those still to be delivered')
    .option('--task <id>', 'only those about one task')
    .action(
      run(async (report, options, given: Listing) =>
        withLedger(options, async ({ ledger, principal: { tenant } }) => {
          const state = stateOf(given);
          const found = await ledger.alerts({
            tenant,
            limit: LISTED_MAX,
            ...(state && { state }),
            ...(given.task !== undefined && { taskId: given.task }),
          });
          report.answer(found, (terminal) => {
            for (const alert of found) writeAlert(terminal, alert);
            if (found.length === 0) terminal.write('no alerts');
          });
          return EXIT.done;
        }),
      ),
    );
  alerts
    .command('retry [id]')
    .description('have one alert delivered again, also one that was; or, with --all, every dead letter')
    .option('--all', 'every dead letter')
    .action(
      run(async (report, options, text: string | undefined, given: { all?: boolean }) => {
        const id = chosen(text, given.all === true);
        return withLedger(options, async ({ ledger, principal: { tenant, subject } }) => {
          const ids = await ledger.redeliver({ tenant, by: subject, ...(id !== null && { id }) });
          if (id !== null && ids.length === 0) throw usage(`There is no alert ${id} that you may see.`);
          report.answer({ retried: ids }, (terminal) =>
            terminal.write(`${ids.length} alert(s) wait for a worker, which looks within seconds`),
          );
          return EXIT.done;
        });
      }),
    );
}

function stateOf({ dead, waiting }: Listing): AlertState | null {
  if (dead && waiting) throw usage('An alert is either dead or waiting: leave out --dead or --waiting.');
  if (dead) return 'dead';
  return waiting ? 'waiting' : null;
}

/** Null: all that are dead. */
function chosen(text: string | undefined, isAll: boolean): number | null {
  if (text === undefined && isAll) return null;
  if (text !== undefined && !isAll && /^[1-9]\d{0,14}$/.test(text)) return Number(text);
  throw usage('Name one alert by its number from `holdfast alerts`, or say --all for every dead letter.');
}

const usage = (message: string): HoldfastError => new HoldfastError('invalid_arguments', message);

function writeAlert(terminal: Terminal, alert: StoredAlert): void {
  const { id, state, createdAt, type, taskId, message, attempts, lastError } = alert;
  const at = new Date(createdAt).toISOString();
  const color = { sent: 'green', waiting: 'yellow', dead: 'red' } as const;
  terminal.write(`${id}  ${terminal.paint(color[state], state)}  ${at}  ${type}  ${taskId}`);
  terminal.write(`   ${oneLine(message)}`);
  if (state !== 'sent' && lastError !== null)
    terminal.write(`   not delivered in ${attempts} tries: ${oneLine(lastError)}`);
}
