/** The tables of docs/mcp-client.md; a unit test holds page and code together. */
import type { EffectClass } from '../task/plan.ts';
import { planAfterLoss } from './reconnect-plan.ts';
import type { ReconnectStep, UnderWay } from './reconnect-plan.ts';
import { RETRY_MATRIX, SITUATIONS } from './retry-matrix.ts';
import type { RetryVerdict, Situation } from './retry-matrix.ts';

const VERDICTS: Readonly<Record<RetryVerdict, string>> = {
  again_new_id: 'again, new request id',
  again_same_key: 'again, new request id, same key and arguments',
  read_task: 'never again; the task is read',
  find_task: 'never again; the task is looked for under its key, else `unknown`',
  refused: '`failed`, effect `none`',
  unknown: 'never again; `unknown`, and whom to ask',
};

export function retryTable(): string {
  const situations = Object.keys(SITUATIONS) as Situation[];
  const rows = (Object.keys(RETRY_MATRIX) as EffectClass[]).map((effect) => [
    `\`${effect}\``,
    ...situations.map((situation) => VERDICTS[RETRY_MATRIX[effect][situation]]),
  ]);
  return table(['class', ...situations.map((situation) => SITUATIONS[situation])], rows);
}

const call = (effect: EffectClass, taskId: string | null, isHoldfasts = true): UnderWay => ({
  kind: 'call',
  effect,
  canCarryKey: effect !== 'safe',
  canBeFound: effect !== 'safe' && isHoldfasts,
  taskId,
});

/** What was under way, and whose word counts afterwards. */
const KINDS: readonly [what: string, underWay: UnderWay, authority: string][] = [
  ['a `safe` call', call('safe', null), 'the new answer'],
  ['a `conditional` call', call('conditional', null), 'the ledger behind the key: same key, same task'],
  ['a call whose task is known', call('unsafe', 'T'), '`tasks/get`, or the tool `task_get`'],
  [
    'an `unsafe` call of a Holdfast gateway, no task known',
    call('unsafe', null),
    'the ledger behind the key, asked with `task_get`',
  ],
  ['an `unsafe` call elsewhere', call('unsafe', null, false), 'the target, asked by a person'],
  ['the list of tools', { kind: 'tools' }, '`tools/list`'],
  ['a read of a task', { kind: 'read', taskId: 'T' }, '`tasks/get`, or `task_get`'],
  ['a cancel of a task', { kind: 'cancel', taskId: 'T' }, 'the task, read until it has ended'],
  ['an answer to a task', { kind: 'answer', taskId: 'T' }, '`tasks/get`: is the key still asked for?'],
  [
    'a watch of T and U',
    { kind: 'watch', taskIds: ['T', 'U'] },
    '`tasks/get` of each, once the stream stands',
  ],
];

export function reconnectTable(): string {
  const rows = KINDS.map(([what, underWay, authority]) => [
    what,
    planAfterLoss(underWay).map(stepWords).join('; then '),
    authority,
  ]);
  return table(
    ['under way when the connection was lost', 'what is done, each under a new id', 'authoritative'],
    rows,
  );
}

function stepWords(step: ReconnectStep): string {
  switch (step.do) {
    case 'call_again':
      return step.sameKey ? 'the call again, same key and arguments' : 'the call again';
    case 'list_tools':
      return 'list the tools';
    case 'listen':
      return `listen to ${step.taskIds.join(' and ')}`;
    case 'read_task':
      return `read ${step.taskId}`;
    case 'cancel_again':
      return `cancel ${step.taskId} again`;
    case 'answer_if_asked':
      return 'answer again if it still asks';
    case 'find_task':
      return 'look for its task by tool and key; then read it, or where none is found `unknown`';
    case 'report_unknown':
      return 'nothing is sent: `unknown`';
    default:
      return step satisfies never;
  }
}

function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.join(' | ')} |\n`;
  return [head, head.map(() => '---'), ...rows].map(line).join('');
}
