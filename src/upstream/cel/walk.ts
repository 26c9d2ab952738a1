/**
 * What an expression touches, read off its syntax: names that no schema has (the library lets `has(args.pth)` pass),
 * functions that are not taken, how deep its macros nest, and whose `isError` it looks at.
 */
import type { ASTNode } from '@marcbachmann/cel-js';
import { closestName } from '../closest-name.ts';
import type { CelType } from './cel-type.ts';

export interface Touched {
  /** Each with the offset in the expression. */
  problems: { at: number; message: string }[];
  /** Macros within macros; what evaluation costs is the length of a list to this power. */
  nesting: number;
  /** Texts become lists. */
  splits: boolean;
  /** `answer`, `reads.now`, `before.old`: every answer whose failure the expression itself judges. */
  judgedFailures: Set<string>;
  /** Every answer it looks at in any way. */
  answersRead: Set<string>;
  /** The variables it names. */
  variables: Set<string>;
}

/** Variables whose members are answers, by name. */
const NAMED = new Set(['reads', 'before']);
const MACROS = new Set([
  'all',
  'exists',
  'exists_one',
  'existsOne',
  'map',
  'filter',
  'transformList',
  'transformMap',
]);

export function touchedBy(root: ASTNode, variables: Record<string, CelType>): Touched {
  const touched: Touched = {
    problems: [],
    nesting: 0,
    splits: false,
    judgedFailures: new Set(),
    answersRead: new Set(),
    variables: new Set(),
  };
  visit(root, new Set(), 0);
  return touched;

  function visit(node: ASTNode, bound: Set<string>, nesting: number): void {
    touched.nesting = Math.max(touched.nesting, nesting);
    const path = pathOf(node, bound);
    if (path !== null) return note(path, node);
    const called = node.op === 'rcall' || node.op === 'call' ? node.args[0] : null;
    if (called === 'matches') refuseMatches(node);
    touched.splits ||= called === 'split' || called === 'json';
    const isMacro = node.op === 'rcall' && MACROS.has(node.args[0]);
    const inner = isMacro || isBind(node) ? new Set([...bound, ...boundBy(node)]) : bound;
    for (const child of childrenOf(node)) visit(child, inner, nesting + (isMacro ? 1 : 0));
  }

  function note(path: Path, node: ASTNode): void {
    touched.variables.add(path.names[0] as string);
    touched.answersRead.add(path.names.slice(0, NAMED.has(path.names[0] as string) ? 2 : 1).join('.'));
    const failing = path.names.at(-1) === 'isError' ? path.names.slice(0, -1).join('.') : null;
    if (failing !== null) touched.judgedFailures.add(failing);
    let type: CelType | undefined = variables[path.names[0] as string];
    for (const name of path.names.slice(1)) {
      if (type?.kind !== 'object') return;
      const next: CelType | undefined = Object.hasOwn(type.fields, name) ? type.fields[name] : undefined;
      if (next === undefined) {
        touched.problems.push({ at: node.start, message: unknownName(path, name, Object.keys(type.fields)) });
        return;
      }
      type = next;
    }
  }

  /** Backtracking can take for ever, and what it is matched against comes from outside. */
  function refuseMatches(node: ASTNode): void {
    touched.problems.push({
      at: node.start,
      message:
        'matches() is not taken, since its time is not bounded: use startsWith, endsWith, contains or split',
    });
  }
}

function unknownName({ names }: Path, name: string, known: string[]): string {
  const closest = closestName(name, known);
  const there = closest === null ? ` there is ${known.join(', ') || 'nothing'}` : ` did you mean ${closest}?`;
  return `${names.slice(0, names.indexOf(name)).join('.')} has no ${name};${there}`;
}

interface Path {
  names: string[];
}

/** `a.b["c"]` from a variable on; null for anything else, and for names that a macro bound. */
function pathOf(node: ASTNode, bound: Set<string>): Path | null {
  if (node.op === 'id') return bound.has(node.args) ? null : { names: [node.args] };
  if (node.op === '.' || node.op === '.?') {
    const base = pathOf(node.args[0], bound);
    return base && { names: [...base.names, node.args[1]] };
  }
  if (node.op === '[]' && node.args[1].op === 'value' && typeof node.args[1].args === 'string') {
    const base = pathOf(node.args[0], bound);
    return base && { names: [...base.names, node.args[1].args] };
  }
  return null;
}

const isBind = (node: ASTNode): boolean => node.op === 'rcall' && node.args[0] === 'bind';

/** The names that a macro or `cel.bind` gives to its members. */
function boundBy(node: ASTNode): string[] {
  if (node.op !== 'rcall') return [];
  const first = node.args[2][0];
  return first?.op === 'id' ? [first.args] : [];
}

function childrenOf(node: ASTNode): ASTNode[] {
  switch (node.op) {
    case 'value':
    case 'id':
      return [];
    case '.':
    case '.?':
      return [node.args[0]];
    case 'call':
      return node.args[1];
    case 'rcall':
      return [node.args[1], ...node.args[2]];
    case 'list':
      return node.args;
    case 'map':
      return node.args.flat();
    case '!_':
    case '-_':
      return [node.args];
    default:
      return [...node.args];
  }
}
