/** A rehearsal's report as Markdown, for an auditor: what was promised, what was done, what the target counted. Pure. */
import type { RehearsalReport, ScenarioReport } from './report.ts';

export function rehearsalMarkdown(report: RehearsalReport): string {
  return (
    [
      `# Rehearsal of ${report.action}`,
      summary(report),
      facts(report),
      '## What the target counted',
      'Each line is a task of its own, under a key of its own, run by a real worker on a real Temporal server. *Effects* and ' +
        '*undone* are the target’s own count of its operations, asked again when the rehearsal was over.',
      results(report),
      ...stepsPart(report),
      ...brokenPart(report),
      ...skippedPart(report),
      '## What this does not show',
      bullets([
        ...report.notes,
        'The target was alive throughout; what it forgets after a day or a restart was not rehearsed.',
        'Workers were lost, not the Temporal server or the ledger’s database.',
        'Approvals were given by the rehearsal itself, in the roles that policy names.',
      ]),
      '## Operations',
      operations(report),
    ].join('\n\n') + '\n'
  );
}

function summary({ ok, scenarios, broken, startedAt, durationMs }: RehearsalReport): string {
  const count = scenarios.filter(({ verdict }) => verdict === 'broken').length;
  const verdict = ok
    ? `All promises were kept in ${scenarios.length} scenarios.`
    : `**${broken.length} promises were broken**, in ${count} of ${scenarios.length} scenarios.`;
  return `${verdict} Rehearsed on ${startedAt} in ${(durationMs / 1_000).toFixed(1)} s.`;
}

function facts(report: RehearsalReport): string {
  const rows = [
    ['action', `${report.action}, contract version ${report.contractVersion}`],
    ['effect', report.effect],
    ['look-up', report.lookup],
    ['rollback', report.rollback],
    ['on cancel', report.onCancel],
    ['approval', report.approval],
    ['arguments', code(JSON.stringify(report.args))],
    ['Node', report.node],
  ];
  return table(['', ''], rows);
}

function results({ scenarios }: RehearsalReport): string {
  const rows = scenarios.map((each) => [
    each.scenario,
    each.rules.join(', '),
    number(each.effects),
    number(each.undone),
    each.end,
    each.audit.intact ? `intact, ${each.audit.entries}` : 'broken',
    each.verdict === 'kept' ? 'kept' : '**broken**',
  ]);
  return table(['scenario', 'rules', 'effects', 'undone', 'end', 'audit', 'promise'], rows);
}

/** Of a procedure: what each step's own target counted. */
function stepsPart({ scenarios }: RehearsalReport): string[] {
  const rows = scenarios.flatMap(({ scenario, steps = [] }) =>
    steps.map(({ step, action, said, effects, undone, operationId }) => [
      scenario,
      step,
      action,
      said ?? 'never begun',
      number(effects),
      number(undone),
      code(operationId),
    ]),
  );
  if (rows.length === 0) return [];
  return [
    '## Step by step',
    table(['scenario', 'step', 'action', 'the task says', 'effects', 'undone', 'operation'], rows),
  ];
}

function brokenPart({ broken }: RehearsalReport): string[] {
  return broken.length === 0 ? [] : ['## Broken promises', bullets(broken)];
}

function skippedPart({ skipped }: RehearsalReport): string[] {
  if (skipped.length === 0) return [];
  const rows = skipped.map(({ scenario, reason }) => [scenario, reason]);
  return ['## Not rehearsed', table(['scenario', 'why'], rows)];
}

/** So that a line can be found in the target's own books, and in the audit. */
function operations({ scenarios }: RehearsalReport): string {
  const calls = ({ calls: made }: ScenarioReport): string =>
    Object.entries(made)
      .map(([handler, times]) => `${handler} ${times}`)
      .join(', ');
  const rows = scenarios.map((each) => [
    each.scenario,
    code(each.operationId),
    calls(each) || 'none',
    each.alerts.join(', ') || 'none',
    code(each.audit.lastHash?.slice(0, 16) ?? ''),
  ]);
  return table(['scenario', 'operation', 'handler calls', 'alerts', 'last audit hash'], rows);
}

const number = (count: number | null): string => (count === null ? '–' : String(count));
const code = (text: string): string => (text === '' ? '' : `\`${text.replaceAll('`', '’')}\``);
const bullets = (lines: readonly string[]): string => lines.map((line) => `- ${oneLine(line)}`).join('\n');

function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => oneLine(cell).replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), line(head.map(() => '---')), ...rows.map(line)].join('\n');
}

/** Nothing from outside starts a line of its own. */
const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').trim();
