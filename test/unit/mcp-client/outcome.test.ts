/** Read off what the gateway really writes: the same task over the extension and in words comes to the same outcome. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { TaskAnswer } from '../../../src/client/task-client.ts';
import { detailedTask } from '../../../src/gateway/tasks/wire-task.ts';
import { toolResult } from '../../../src/gateway/tool-result.ts';
import { outcomeOfResult, readingOfResult, readingOfTask } from '../../../src/mcp-client/outcome.ts';
import type { CallOutcome, ToolResult } from '../../../src/mcp-client/outcome.ts';
import type { JsonObject } from '../../../src/task/json.ts';
import { LOCAL, openApproval } from '../../support/driven-gateway.ts';
import { holds } from '../../support/property.ts';

const base: TaskAnswer = {
  taskId: 'task_1',
  operationId: 'op_1',
  action: 'transfer',
  status: 'running',
  effect: null,
  cause: null,
  replayed: false,
  attached: false,
  autoRetry: true,
  cancelRequested: false,
  result: null,
  error: null,
  stale: false,
  statusMessage: 'running attempt 1',
  createdAt: 1_800_000_000_000,
  updatedAt: 1_800_000_000_500,
};

const ENDS: Partial<TaskAnswer>[] = [
  { status: 'completed', effect: 'applied', result: { ok: true } },
  { status: 'completed', effect: 'none', result: 'text', replayed: true },
  { status: 'failed', effect: 'none', error: { code: 'permanent_failure', message: 'no' } },
  { status: 'failed', effect: 'rolled_back', error: { code: 'verify_failed', message: 'no' } },
  { status: 'failed', effect: 'unknown', error: { code: 'outcome_unknown', message: '?' } },
  { status: 'failed', effect: 'none', error: { code: 'internal_error', message: 'defect' } },
  { status: 'failed', effect: 'unknown', error: { code: 'internal_error', message: 'defect' } },
  { status: 'cancelled', effect: 'none' },
  { status: 'needs_attention', effect: 'unknown' },
  { status: 'running' },
  { status: 'reconciling' },
  { status: 'backing_off' },
  { status: 'awaiting_approval', approval: openApproval() },
  { status: 'awaiting_approval', approval: openApproval({ mayAnswerOverMcp: false }) },
];

const onWire = (value: object) => JSON.parse(JSON.stringify(value)) as JsonObject;

/** What a client may believe, from the task's own state. */
function truth({ status, effect, approval }: TaskAnswer): CallOutcome['kind'] | 'working' {
  if (effect === 'unknown' || status === 'needs_attention') return 'unknown';
  if (status === 'completed') return 'completed';
  if (status === 'failed' || status === 'cancelled') return 'failed';
  return approval ? 'input_needed' : 'working';
}

it('says of every task what it is, the same over the extension, in words and as a call’s result [M1.5] [M2.2] [M6.3]', () => {
  holds('mcp-client outcomes', fc.constantFrom(...ENDS), (change) => {
    const answer = { ...base, ...change };
    const overTasks = readingOfTask(onWire(detailedTask(answer, { principal: LOCAL, canElicit: true })));
    const result = onWire(toolResult(answer, LOCAL)) as unknown as ToolResult;
    const inWords = readingOfResult(result, 'task_1');
    const expected = truth(answer);
    expect(overTasks.outcome?.kind ?? 'working').toBe(expected);
    expect(inWords.outcome?.kind ?? 'working').toBe(expected);
    expect(outcomeOfResult(result).kind).toBe(expected);
    expect([overTasks.taskId, inWords.taskId]).toEqual(['task_1', 'task_1']);
    expect([overTasks.hasEnded, inWords.hasEnded]).toEqual([overTasks.hasEnded, overTasks.hasEnded]);
    expect(overTasks.sequence).toBe(base.updatedAt);
    for (const { outcome } of [overTasks, inWords]) {
      if (outcome?.kind === 'unknown')
        expect(outcome.ask).toMatch(/^Do not call again\. Ask for task task_1/);
      if (outcome?.kind === 'failed') expect(outcome.effect).toBe(answer.effect);
      if (outcome?.kind === 'completed') expect(outcome.replayed).toBe(answer.replayed);
    }
  });
});

it('carries a question with its key, and none where policy has it decided elsewhere [M2.3]', () => {
  const asked = { ...base, status: 'awaiting_approval' as const, approval: openApproval() };
  const elsewhere = { ...asked, approval: openApproval({ mayAnswerOverMcp: false }) };
  const keys = (answer: TaskAnswer) => {
    const overTasks = readingOfTask(onWire(detailedTask(answer, { principal: LOCAL, canElicit: true })));
    const inWords = outcomeOfResult(onWire(toolResult(answer, LOCAL)) as unknown as ToolResult);
    return [overTasks.outcome, inWords].map(
      (each) => each?.kind === 'input_needed' && Object.keys(each.requests),
    );
  };
  expect(keys(asked)).toEqual([['action#1'], ['action#1']]);
  expect(keys(elsewhere)).toEqual([[], []]);
});

it('believes another server’s plain result and its error, without an effect it never spoke of', () => {
  const content = [{ type: 'text', text: 'hello' }];
  expect(outcomeOfResult({ content })).toMatchObject({ kind: 'completed', taskId: null });
  expect(outcomeOfResult({ content, isError: true })).toMatchObject({
    kind: 'failed',
    effect: null,
    error: { code: 'tool_error', message: 'hello' },
  });
});
