/** What becomes of each shipped tool's call when its answer is lost, read off its contract and the rule that decides (S2.4). */
import { globSync } from 'node:fs';
import { fileURLToPath, pathToFileURL } from 'node:url';
import type { HoldfastConfig } from '../../src/contract/define-config.ts';
import { handlersPresent } from '../../src/contract/implement-action.ts';
import type { Action } from '../../src/contract/implement-action.ts';
import { judge } from '../../src/operation/reconcile.ts';
import type { Doubt, Verdict } from '../../src/operation/reconcile.ts';
import type { UpstreamDefinition } from '../../src/contract/upstream-definition.ts';
import { compileUpstream, quarantineOf } from '../../src/upstream/upstream-actions.ts';
import { humanDuration } from '../../src/cli/terminal.ts';
import { table } from './page.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));

interface Shipped {
  example: string;
  action: Action;
}

/** Of every example; that of the demo has those of the others once more. */
async function shippedActions(): Promise<Shipped[]> {
  const files = globSync('examples/{*,upstream/*}/holdfast.config.ts', { cwd: ROOT }).sort();
  const shipped: Shipped[] = [];
  for (const file of files) {
    const example = file.split('/').slice(1, -1).join('/');
    if (example === 'demo') continue;
    const { default: config } = (await import(pathToFileURL(`${ROOT}${file}`).href)) as {
      default: HoldfastConfig;
    };
    const upstreams = Object.entries(config.upstreams ?? {});
    const actions = [
      ...config.actions,
      ...(config.procedures?.contracts ?? []),
      ...upstreams.flatMap(([name, definition]) => upstreamActions(name, definition)),
    ];
    shipped.push(...actions.map((action) => ({ example, action })));
  }
  return shipped;
}

/** Of the tools that the configuration names; what others the server lists is for it to say. Nothing here calls it. */
function upstreamActions(name: string, definition: UpstreamDefinition): Action[] {
  const never = () => Promise.reject(new Error('no server is called for a table'));
  const source = {
    name,
    definition,
    upstream: { call: never, remote: { status: never, cancel: never, answer: never } },
    before: { keep: never, recall: never, forget: never },
  };
  const listed = [...namedTools(definition)].map((tool) => ({ name: tool, inputSchema: { type: 'object' } }));
  const { tools } = compileUpstream(source, listed);
  return tools.flatMap((tool) => {
    const defect = quarantineOf(tool);
    if (defect) throw defect;
    return tool.action && tool.isOffered && !tool.isDirect ? [tool.action] : [];
  });
}

/** Those with an entry, those that only read by name, and those that an entry asks. */
function namedTools({ tools = {}, safe = [] }: UpstreamDefinition): Set<string> {
  const asked: string[] = [];
  JSON.stringify(tools, (key, value: unknown) => {
    if (key === 'tool' && typeof value === 'string') asked.push(value);
    return value;
  });
  return new Set([...Object.keys(tools), ...safe.filter((pattern) => !pattern.endsWith('*')), ...asked]);
}

export async function retryTablePage(): Promise<string> {
  const rows = (await shippedActions()).map(({ example, action }) => rowOf(example, action));
  return `# Retry table of every shipped tool

Written by \`npm run evidence\` from the contracts of \`examples/*\` and from the function that decides (\`src/operation/reconcile.ts\`); edit those.
*Lost answer*: the request may have reached the target, and nobody knows. Whoever takes over, another attempt or another worker, does what
stands here. What the caller's own side does is in [the reconnect plan](reconnect-plan.md).

${table(
  [
    'tool',
    'effect class',
    'who dedupes',
    'look-up',
    'lost answer, called with a key',
    'lost answer, without a key',
    'rollback',
    'one attempt · verify · whole run',
    'retries',
  ],
  rows,
)}
Where there is a look-up the target is asked first, by operationId, and the cell says what each answer leads to. *adopted*: verified and committed,
nothing is sent. *sent again*: under the same operationId, after the precondition. *a person*: \`needs_attention\`, and somebody is alerted.
The look-up of a procedure and its rollback are those of its steps. Of an upstream server there are the tools that its
configuration makes tasks of. What is only \`safe\` there is passed through: nothing is recorded, and whoever called calls again. What
it does not name is \`unsafe\`, with nobody to dedupe and no look-up: after a lost answer, a person. Of the tools that the gateway adds, \`task_get\` and
\`task_wait\` read (\`safe\`); \`task_cancel\` and \`task_answer\` are published as \`unsafe\`, so that no client repeats them by itself. A second
cancel finds the first, and of two decisions the first stands.
`;
}

function rowOf(example: string, action: Action): string[] {
  const { contract } = action;
  const { attemptMs, verifyMs, runMs } = contract.deadlines;
  const isProcedure = contract.isProcedure === true;
  return [
    `[\`${contract.name}\`](../../examples/${example})`,
    contract.effect,
    deduperOf(action),
    isProcedure ? 'its steps’' : lookupWords(handlersPresent(action).lookup),
    afterLoss(action, true),
    contract.effect === 'safe' ? 'the same' : afterLoss(action, false),
    contract.rollback.kind,
    isProcedure
      ? `its steps’ · ${humanDuration(runMs)}`
      : [attemptMs, verifyMs, runMs].map(humanDuration).join(' · '),
    isProcedure ? 'its steps’' : String(contract.retry.maximumRetries),
  ];
}

function deduperOf({ contract }: Action): string {
  if (contract.isProcedure === true) return 'each step, by its own contract';
  if (contract.transactional) return 'the ledger: effect and record are one transaction';
  switch (contract.effect) {
    case 'safe':
      return 'nobody need';
    case 'conditional':
      return 'the target, by operationId';
    case 'unsafe':
      return 'nobody';
    default:
      return contract.effect satisfies never;
  }
}

function lookupWords(lookup: Doubt['lookup']): string {
  switch (lookup) {
    case 'none':
      return 'none';
    case 'plain':
      return 'yes; its “no” may be too early';
    case 'conclusive':
      return 'yes; its “no” is final once settled';
    default:
      return lookup satisfies never;
  }
}

function afterLoss(action: Action, isKeyed: boolean): string {
  const { contract } = action;
  if (contract.isProcedure === true) return 'goes on where it was; each step by its own contract';
  if (contract.transactional) return 'committed: replayed; else nothing happened, and it runs again';
  const { lookup } = handlersPresent(action);
  const autoRetry = isKeyed || contract.effect === 'safe';
  const about = {
    effect: contract.effect,
    autoRetry,
    lookup,
    purpose: 'execute',
    isSettled: true,
    isFinal: true,
  } as const;
  if (lookup === 'none') return verdictWords(judge({ ...about, found: 'none' }));
  const verdictFor = (found: Doubt['found']) => verdictWords(judge({ ...about, found }));
  return `there: ${verdictFor('applied')}; not there: ${verdictFor('not_applied')}; can’t tell: ${verdictFor('unknown')}`;
}

function verdictWords(verdict: Verdict): string {
  switch (verdict) {
    case 'adopt':
      return 'adopted';
    case 'execute':
      return 'sent again';
    case 'attention':
      return 'a person';
    case 'release':
    case 'wait':
    case 'lookAgain':
      throw new Error(`${verdict} is no last word on a settled attempt`);
    default:
      return verdict satisfies never;
  }
}
