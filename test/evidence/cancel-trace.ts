/**
 * What a client sees of a cancel, step by step, on the real system: the target holds first its answer, then the undoing, so
 * that each step stands still while it is looked at.
 */
import type { FaultSystem } from '../support/fault-system.ts';
import { TASKS_CAPABILITIES } from '../support/mcp-clients.ts';
import { answerOf, post } from '../support/mcp-messages.ts';
import { until } from '../../src/cli/demo/until.ts';
import { jsonBlock, table } from './page.ts';
import type { Pages, StableNames } from './page.ts';

const TASK_QUEUE = 'evidence-cancel';
const ACTION = 'target_undone';

type Result = Record<string, unknown>;
interface Step {
  step: string;
  happens: string;
  sent: string;
  answer: Result;
  effects: string;
}

export async function cancelTrace(system: FaultSystem, names: StableNames): Promise<Pages> {
  const { target } = system;
  const store = await system.store('sqlite');
  await target.setMode({ kind: 'hold', gate: 'answer', when: 'afterApply' }, { times: 1 });
  await target.setMode({ kind: 'hold', gate: 'undo', when: 'beforeApply' }, { endpoint: 'undo', times: 1 });
  const options = { taskQueue: TASK_QUEUE, gateway: { blockingMs: 40_000 } };
  const [gateway, worker] = await Promise.all([
    system.caller(store, options).ready(),
    system.worker(store, { taskQueue: TASK_QUEUE }).ready(),
  ]);
  const ask = async (method: string, params: object): Promise<Result> => {
    const message = { method, params: { ...params }, capabilities: TASKS_CAPABILITIES };
    return (await answerOf(await post(gateway.data['url'] ?? '', message))).result ?? {};
  };

  const args = { value: 'v', idempotencyKey: 'order-8' };
  const handle = await ask('tools/call', { name: ACTION, arguments: args });
  const taskId = String(handle['taskId']);
  names.name(taskId, 'task');
  const { operationId } = factsOf(handle);
  const read = () => ask('tasks/get', { taskId });
  const whenRead = async (what: string, isSo: (result: Result) => boolean): Promise<Result> => {
    let last: Result = {};
    await until(what, async () => isSo((last = await read())));
    return last;
  };
  const steps: Step[] = [];
  const write = async (step: string, happens: string, sent: string, answer: Result): Promise<void> => {
    const [applied, undone] = [await target.count(operationId), await target.undone(operationId)];
    steps.push({ step, happens, sent, answer, effects: `${applied}, ${undone} undone` });
  };

  await target.reached('answer');
  await write(
    'called',
    'the effect has taken place, the target has not answered yet',
    `tools/call ${ACTION}`,
    handle,
  );
  await write(
    'acknowledged',
    'the intent is on record, nothing more',
    'tasks/cancel',
    await ask('tasks/cancel', { taskId }),
  );
  const asked = await whenRead('the cancel is told', ({ statusMessage }) =>
    String(statusMessage).includes('Cancel requested'),
  );
  await write('working', 'the attempt under way is let run to its end', 'tasks/get', asked);
  await target.release('answer');
  await target.reached('undo');
  const undoing = await whenRead('it is being undone', ({ statusMessage }) =>
    String(statusMessage).includes('being undone'),
  );
  await write(
    'observed',
    'the attempt has ended and the task has met the cancel: it undoes',
    'tasks/get',
    undoing,
  );
  await target.release('undo');
  const ended = await whenRead('it has ended', ({ status }) => status !== 'working');
  await write('terminal', 'undone, and seen to be undone', 'tasks/get', ended);
  await write(
    'a late cancel',
    'acknowledged, without effect',
    'tasks/cancel',
    await ask('tasks/cancel', { taskId }),
  );
  await write('still terminal', 'what has ended stays as it ended', 'tasks/get', await read());
  await Promise.all([gateway.kill(), worker.kill()]);
  return { 'cancel-trace.md': page(names, steps) };
}

const factsOf = (result: Result): { operationId: string } & Result =>
  (result['_meta'] as Result)['holdfast/task'] as { operationId: string } & Result;

function page(names: StableNames, steps: readonly Step[]): string {
  const cell = (value: unknown) => (value === undefined ? '–' : `\`${JSON.stringify(names.of(value))}\``);
  const rows = steps.map(({ step, happens, sent, answer, effects }) => [
    step,
    happens,
    `\`${sent}\``,
    cell(answer['status']),
    cell(answer['statusMessage']),
    effects,
  ]);
  const terminal = steps.find(({ step }) => step === 'terminal')?.answer;
  return `# Trace of a cancel

Written by \`npm run evidence\` against a real gateway, worker and Temporal server; effects are the target’s own count. The
acknowledgement is never the end: only the task’s own status is (\`onCancel: 'rollback'\`, \`cancelAttempt: 'finish'\`).

${table(['step', 'what happens', 'sent', 'status', 'in words', 'effects'], rows)}
## The terminal answer, whole

${jsonBlock(names.of(terminal))}
Proven by \`test/workflow/action-messages.test.ts\` and \`test/unit/task-cancel.test.ts\`; the races about the request are [races.md](races.md).
`;
}
