/**
 * Which rules the tests of a source file name. Read off the syntax tree: the names of `test`, `it` and `describe` calls,
 * with `.each` and template literals; what is skipped proves nothing, and a `describe` proves nothing without a test in it.
 */
import ts from 'typescript';

export interface Citation {
  rule: string;
  /** The test's name, with what stands around it. */
  test: string;
}

const TAG = /\[((?:[SM]\d+(?:\.\d+)?|(?:case|mode) \d+)(?:, ?(?:[SM]\d+(?:\.\d+)?|(?:case|mode) \d+))*)\]/g;

export function citationsIn(source: string, fileName: string): Citation[] {
  const file = ts.createSourceFile(fileName, source, ts.ScriptTarget.Latest, true);
  const found: Citation[] = [];
  visit(file, []);
  return found;

  function visit(node: ts.Node, around: string[]): void {
    if (ts.isCallExpression(node)) {
      const call = suiteCall(node);
      if (call?.isSkipped) return;
      if (call) around = enter(call, around);
    }
    ts.forEachChild(node, (child) => visit(child, around));
  }

  /** The names around what is inside the call. */
  function enter({ kind, name }: SuiteCall, around: string[]): string[] {
    if (kind === 'describe') return [...around, name];
    const test = [...around, name].join(' > ');
    for (const rule of rulesIn(test)) found.push({ rule, test });
    return around;
  }
}

/** The rules named in a text, each once. */
export function rulesIn(text: string): string[] {
  const rules = [...text.matchAll(TAG)].flatMap(([, list]) => (list ?? '').split(/, ?/));
  return [...new Set(rules)];
}

interface SuiteCall {
  kind: 'test' | 'describe';
  name: string;
  isSkipped: boolean;
}

function suiteCall(node: ts.CallExpression): SuiteCall | null {
  const [first] = node.arguments;
  const chain = chainOf(node.expression);
  const [root, ...modifiers] = chain;
  if (first === undefined || (root !== 'test' && root !== 'it' && root !== 'describe')) return null;
  const name = literalText(first);
  if (name === null) return null;
  const isSkipped = modifiers.includes('skip') || modifiers.includes('todo');
  return { kind: root === 'describe' ? 'describe' : 'test', name, isSkipped };
}

/** `test.each(rows)` to `['test', 'each']`; whatever is no such chain to `[]`. */
function chainOf(expression: ts.Expression): string[] {
  if (ts.isIdentifier(expression)) return [expression.text];
  if (ts.isPropertyAccessExpression(expression))
    return [...chainOf(expression.expression), expression.name.text];
  if (ts.isCallExpression(expression)) return chainOf(expression.expression);
  if (ts.isTaggedTemplateExpression(expression)) return chainOf(expression.tag);
  return [];
}

/** The fixed parts of a name. */
function literalText(node: ts.Expression): string | null {
  if (ts.isStringLiteralLike(node)) return node.text;
  if (ts.isTemplateExpression(node))
    return node.head.text + node.templateSpans.map(({ literal }) => literal.text).join('…');
  if (ts.isBinaryExpression(node)) return `${literalText(node.left) ?? ''}${literalText(node.right) ?? ''}`;
  return ts.isIdentifier(node) ? '' : null;
}
