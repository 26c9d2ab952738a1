/**
 * One key, from a race to a restart, on the real system: two gateway processes at a barrier, then the ledger's record of what
 * they did, then all of them dead and another gateway asked, then a caller who spoils what it was given. The target's
 * own count is the oracle throughout.
 */
import { PRINCIPAL } from '../support/fault-system.ts';
import type { FaultSystem, Store } from '../support/fault-system.ts';
import { answerOf, post } from '../support/mcp-messages.ts';
import type { RpcResponse } from '../support/mcp-messages.ts';
import { SlowReader } from '../support/slow-reader.ts';
import { until } from '../../src/cli/demo/until.ts';
import { jsonBlock, table } from './page.ts';
import type { Pages, StableNames } from './page.ts';

const TASK_QUEUE = 'evidence-one-key';
const BLOCKING_MS = 40_000;
/** Nobody dedupes it: whatever is sent twice is done twice. */
const ACTION = 'target_unsafe';
const KEY = 'order-7';
const ARGUMENTS = { value: 'three widgets' };
const GATE = 'held at the target';
const CALL = {
  method: 'tools/call',
  params: { name: ACTION, arguments: { ...ARGUMENTS, idempotencyKey: KEY } },
  meta: { progressToken: 'p' },
};

export async function oneKey(system: FaultSystem, names: StableNames): Promise<Pages> {
  const store = await system.store('sqlite');
  const raced = await race(system, store);
  const { taskId, operationId } = raced.facts;
  names.name(taskId, 'task');
  const record = await recordOf(store, taskId, names);
  const reopened = await reopen(system, store);
  const mutated = await mutate(system, reopened.store);
  const count = await system.target.count(operationId);
  return {
    'same-key-race.md': racePage(names, raced),
    'ledger-record.json': `${JSON.stringify(record, null, 2)}\n`,
    'reopen-and-mutation.md': reopenPage(names, { answer: reopened.answer, mutated, count }),
  };
}

interface Raced {
  facts: { taskId: string; operationId: string };
  answers: RpcResponse[];
  effects: number;
  endpoints: string[];
}

/** Both have reserved before either starts; both wait before the target answers. Everybody is killed at the end. */
async function race(system: FaultSystem, store: Store): Promise<Raced> {
  const { target } = system;
  await target.setMode({ kind: 'hold', gate: GATE, when: 'afterApply' }, { times: 1 });
  const stop = { point: 'after_reserve' } as const;
  const options = { taskQueue: TASK_QUEUE, stop, gateway: { blockingMs: BLOCKING_MS } };
  const gateways = await Promise.all([1, 2].map(() => system.caller(store, options).ready()));
  const readers = gateways.map(({ data }) => new SlowReader(data['url'] ?? '', CALL));
  try {
    for (const reader of readers) reader.read();
    await Promise.all(gateways.map((gateway) => gateway.reached(1)));
    await Promise.all(gateways.map((gateway) => gateway.order({ order: 'goOn' })));
    await until('both callers wait', async () => readers.every(({ messages }) => messages.length > 0));
    const worker = await system.worker(store, { taskQueue: TASK_QUEUE }).ready();
    await target.reached(GATE);
    await target.release(GATE);
    const last = (reader: SlowReader) => reader.messages.at(-1) as RpcResponse;
    await until('both callers are answered', async () =>
      readers.every((reader) => reader.messages.length > 0 && last(reader).result !== undefined),
    );
    await Promise.all([worker, ...gateways].map((child) => child.kill()));
    const answers = readers.map(last);
    const facts = answers[0]?.result?.['_meta'] as { 'holdfast/task': Raced['facts'] };
    const { taskId, operationId } = facts['holdfast/task'];
    const requests = await target.requests({ operationId });
    return {
      facts: { taskId, operationId },
      answers,
      effects: await target.count(operationId),
      endpoints: requests.map(({ endpoint }) => endpoint),
    };
  } finally {
    for (const reader of readers) reader.close();
  }
}

async function recordOf({ ledger }: Store, taskId: string, names: StableNames) {
  const [row] = await ledger.list({ tenant: PRINCIPAL.tenant, action: ACTION });
  const audit = await ledger.audit({ taskId });
  for (const { hash, data } of audit) {
    names.name(hash, 'hash');
    names.name(String(data['process']), 'process');
  }
  const entries = audit.map((entry, index) => ({ ...entry, previous: audit[index - 1]?.hash ?? '64 zeros' }));
  return names.of({ row, audit: entries, verified: await ledger.verifyAudit({ taskId }) });
}

/** Every process of the race is dead; there is no worker, so that nobody could send anything. */
async function reopen(system: FaultSystem, before: Store): Promise<{ store: Store; answer: RpcResponse }> {
  const store = await system.reopen(before);
  const options = { taskQueue: TASK_QUEUE, gateway: { blockingMs: BLOCKING_MS } };
  const gateway = await system.caller(store, options).ready();
  const answer = await answerOf(await post(gateway.data['url'] ?? '', CALL));
  await gateway.kill();
  return { store, answer };
}

interface Mutated {
  given: unknown;
  spoilt: unknown;
  fromAnotherCall: unknown;
  fromARead: unknown;
}

async function mutate(system: FaultSystem, store: Store): Promise<Mutated> {
  const client = await system.client(store, TASK_QUEUE);
  const call = { action: ACTION, args: ARGUMENTS, key: KEY, principal: PRINCIPAL };
  const first = await client.start(call);
  const result = first.result as Record<string, unknown>;
  const given = structuredClone(result);
  result['value'] = 'mine now';
  delete result['resourceId'];
  const again = await client.start(call);
  const read = await client.get(first.taskId, PRINCIPAL);
  return { given, spoilt: result, fromAnotherCall: again.result, fromARead: read.result };
}

const shown = ({ result }: RpcResponse) => ({
  structuredContent: result?.['structuredContent'],
  'holdfast/task': (result?.['_meta'] as Record<string, unknown>)['holdfast/task'],
});

const racePage = (
  names: StableNames,
  { answers, effects, endpoints }: Raced,
): string => `# Two calls with one key

Written by \`npm run evidence\`. Two gateway processes are given the same call, \`${ACTION}\` under the key \`${KEY}\`, and are held
where both have reserved the key and neither has started anything. Nobody dedupes this action: sent twice, it is done twice.

- Requests that the target saw for it, in order: ${endpoints.map((endpoint) => `\`${endpoint}\``).join(', ')}.
- Effects, by the target’s own count: **${effects}**.

${answers
  .map((answer, index) => `## What caller ${index + 1} was answered\n\n${jsonBlock(names.of(shown(answer)))}`)
  .join('\n')}
The ledger’s record of it: [ledger-record.json](ledger-record.json). Proven with both stores by \`test/fault/scenarios.test.ts\`.
`;

interface AfterRace {
  answer: RpcResponse;
  mutated: Mutated;
  count: number;
}

const reopenPage = (
  names: StableNames,
  { answer, mutated, count }: AfterRace,
): string => `# Reopen and mutation

Written by \`npm run evidence\`, after [the race](same-key-race.md), with the same key \`${KEY}\`.

## Every process has ended; a new one is asked

Both gateways and the worker of the race were killed (SIGKILL). A new gateway gets the same call. There is no worker, so
nobody could send anything.

${jsonBlock(names.of(shown(answer)))}
## A caller spoils what it was given

${table(
  ['', 'result'],
  [
    ['what the caller was given', mutated.given],
    ['what it made of the object', mutated.spoilt],
    ['the same call, made again', mutated.fromAnotherCall],
    ['the task, read again', mutated.fromARead],
  ].map(([what, result]) => [String(what), `\`${JSON.stringify(result)}\``]),
)}
Effects after all of it, by the target’s own count: **${count}**.

Proven by \`test/fault/scenarios.test.ts\` (reopen, with and without the engine’s data; mutation) on both stores.
`;
