/** What `holdfast upstream check` prints of one server: its tools as a table, and below it what is wrong or missing. */
import type { ToolReport } from '../upstream/check-upstream.ts';
import { oneLine, tableLines } from './terminal.ts';
import type { Column, Terminal } from './terminal.ts';

export interface ServerReport {
  server: string;
  /** Wrong with the server as a whole, or with the names of its tools. */
  wrong: string[];
  tools: ToolReport[];
}

/** Fits 80 columns: nothing else of a row is as wide as it likes. */
const COLUMNS: Column<ToolReport>[] = [
  { title: 'TOOL', cell: ({ name }) => name, flexible: true, least: 16 },
  { title: 'EFFECT', cell: ({ effect }) => effect },
  { title: 'KEY', cell: ({ key }) => key, flexible: true },
  { title: 'VERIFIED', cell: ({ verifiedBy }) => verifiedBy, flexible: true },
  { title: 'LOOK-UP', cell: ({ lookedUpBy }) => lookedUpBy, flexible: true },
  { title: 'UNDONE', cell: ({ undoneBy }) => undoneBy, flexible: true },
  { title: 'APPROVAL', cell: ({ approval }) => approval, flexible: true },
];

export function writeServer(terminal: Terminal, { server, wrong, tools }: ServerReport): void {
  terminal.write(terminal.paint('bold', server));
  const inTable = tools.filter((tool) => !isPassedThrough(tool));
  if (inTable.length > 0)
    for (const line of tableLines(inTable, COLUMNS, terminal.width)) terminal.write(line);
  writeNames(terminal, 'only read, passed through', tools.filter(isPassedThrough));
  writeNames(
    terminal,
    'not offered to clients',
    tools.filter(({ isOffered }) => !isOffered),
  );
  for (const message of wrong) writeNote(terminal, WRONG, oneLine(message));
  for (const tool of tools) writeNotes(terminal, WRONG, tool, tool.wrong);
  for (const tool of tools) writeNotes(terminal, WARNING, tool, tool.warnings);
}

const isPassedThrough = ({ isDirect, wrong, warnings }: ToolReport): boolean =>
  isDirect && wrong.length + warnings.length === 0;

function writeNames(terminal: Terminal, what: string, tools: readonly ToolReport[]): void {
  if (tools.length > 0) terminal.write(`${what}: ${tools.map(({ name }) => oneLine(name)).join(', ')}`);
}

interface Kind {
  style: 'red' | 'yellow';
  label: string;
}
const WRONG: Kind = { style: 'red', label: 'wrong' };
const WARNING: Kind = { style: 'yellow', label: 'warning' };

function writeNotes(terminal: Terminal, kind: Kind, { name }: ToolReport, messages: readonly string[]): void {
  for (const message of messages) writeNote(terminal, kind, `${oneLine(name)}  ${oneLine(message)}`);
}

function writeNote(terminal: Terminal, { style, label }: Kind, text: string): void {
  terminal.write(`${terminal.paint(style, label)}${' '.repeat(9 - label.length)}${text}`);
}
