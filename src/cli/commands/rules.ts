/** `holdfast rules` and `holdfast rule allow|revoke`: what people allowed in advance (S4.5). */
import type { Comparison, Coverage, StandingRule } from '../../contract/standing-rule.ts';
import type { Duration } from '../../contract/duration.ts';
import { HoldfastError } from '../../contract/error.ts';
import type { Json } from '../../task/json.ts';
import { parseJsonOption } from '../arguments.ts';
import { EXIT } from '../exit-code.ts';
import type { CommandSite } from '../program.ts';
import { withSession } from '../session.ts';
import { humanDuration, oneLine } from '../terminal.ts';
import type { Terminal } from '../terminal.ts';

type Group = CommandSite['program'];

/** For commander: an option that may come several times. */
export const collected = (text: string, earlier: string[] = []): string[] => [...earlier, text];

export const WHEN_OPTION =
  "a comparison that must hold, such as '/amount<=10', '/to=acme' or '/currency in [\"EUR\"]'; all of them must";

export function addRuleCommands(site: CommandSite): void {
  addList(site);
  const rule = site.program
    .command('rule')
    .description('what is allowed in advance, without asking a person each time: allow, revoke');
  addAllow(site, rule);
  addRevoke(site, rule);
}

function addList({ program, run }: CommandSite): void {
  program
    .command('rules')
    .description('list the standing rules, oldest first')
    .option('--action <name>', 'only those of this action')
    .option('--all', 'revoked and expired ones too')
    .action(
      run(async (report, options, given: { action?: string; all?: boolean }) =>
        withSession(options, async ({ client, principal, upstreams }) => {
          const { action } = given;
          const rules = await client.rules(principal, {
            ...given,
            ...(action !== undefined && { action: upstreams.actionOf(action) }),
          });
          report.answer(rules, (terminal) => writeRules(terminal, rules));
          return EXIT.done;
        }),
      ),
    );
}

interface AllowOptions {
  when: string[];
  for?: string;
  reason?: string;
}

function addAllow({ run }: CommandSite, rule: Group): void {
  rule
    .command('allow <action>')
    .description('allow, in your name, what you might approve: calls for which every comparison holds')
    .requiredOption('--when <comparison>', WHEN_OPTION, collected)
    .option('--for <duration>', 'how long it stands, such as 12h or 90d (default 30d, at most 365d)')
    .option('--reason <text>', 'kept in the audit')
    .action(
      run(async (report, options, action: string, given: AllowOptions) =>
        withSession(options, async ({ client, principal, upstreams }) => {
          const made = await client.allow(principal, {
            action: upstreams.actionOf(action),
            covers: coverageOf(given.when),
            ...(given.for !== undefined && { expiresIn: given.for as Duration }),
            ...(given.reason !== undefined && { reason: given.reason }),
          });
          report.answer(made, (terminal) => writeRules(terminal, [made]));
          return EXIT.done;
        }),
      ),
    );
}

function addRevoke({ run }: CommandSite, rule: Group): void {
  rule
    .command('revoke <id>')
    .description('let no further call ride on a rule')
    .option('--reason <text>', 'kept in the audit')
    .action(
      run(async (report, options, id: string, given: { reason?: string }) =>
        withSession(options, async ({ client, principal }) => {
          const revoked = await client.revokeRule(id, principal, given.reason);
          report.answer(revoked, (terminal) => writeRules(terminal, [revoked]));
          return EXIT.done;
        }),
      ),
    );
}

/** What the `--when` of one rule say together. */
export function coverageOf(when: readonly string[]): Coverage {
  const [first, ...others] = when.map(comparisonOf);
  if (first === undefined) throw new HoldfastError('invalid_arguments', '--when is needed at least once.');
  return { kind: 'matching', when: [first, ...others] };
}

/** `/amount<=10`; the value is JSON, or else text. A key that itself has one of the signs can't be named like this. */
function comparisonOf(text: string): Comparison {
  const parts = /^(\/.*?)\s*(<=|>=|=|<|>|\sin\s)\s*(.*)$/s.exec(text);
  const [, at = '', sign = '', value = ''] = parts ?? [];
  if (parts === null)
    throw new HoldfastError(
      'invalid_arguments',
      `--when must be a JSON pointer, one of = < <= > >= in, and a value, such as '/amount<=10'; ${JSON.stringify(text.slice(0, 60))} is not.`,
    );
  const is = sign.trim();
  if (is !== 'in') return { at, is, value: scalarOf(value) } as Comparison;
  return { at, is, values: parseJsonOption('--when', value) } as Comparison; // checked with the whole rule
}

function scalarOf(text: string): Json {
  return /^(-?\d+(\.\d+)?([eE][+-]?\d+)?|true|false|null|".*")$/s.test(text)
    ? parseJsonOption('--when', text)
    : text;
}

/** Whole, however long: nobody allows or keeps what they could not read. */
function writeRules(terminal: Terminal, rules: readonly StandingRule[]): void {
  if (rules.length === 0) terminal.write('No standing rules.');
  for (const rule of rules) {
    const { id, action, contractVersion, covers, by, reason } = rule;
    const facts = [`${action} v${contractVersion}`, `by ${by.subject}`, standingText(rule, Date.now())];
    terminal.write(oneLine(`${id}  ${[...facts, ...(reason === null ? [] : [reason])].join(', ')}`));
    terminal.write(`  ${terminal.paint('dim', 'covers')} ${coverageText(covers)}`);
  }
}

function coverageText(covers: Coverage): string {
  if (covers.kind === 'call') return `exactly the call ${covers.fingerprint.slice(0, 12)}`;
  return oneLine(covers.when.map(comparisonText).join(' and '));
}

function comparisonText(comparison: Comparison): string {
  const value = comparison.is === 'in' ? comparison.values : comparison.value;
  return `${comparison.at} ${comparison.is} ${JSON.stringify(value)}`;
}

function standingText({ revoked, expiresAt }: StandingRule, now: number): string {
  if (revoked !== null) return `revoked by ${revoked.by}`;
  return expiresAt > now ? `for another ${humanDuration(expiresAt - now)}` : 'expired';
}
