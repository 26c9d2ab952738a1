import { isCreateTaskResultV2, isDetailedTaskV2 } from '@modelcontextprotocol/ext-tasks/core/v2';
import { describe, expect, it } from 'vitest';
import type { TaskAnswer } from '../../src/client/task-client.ts';
import { HoldfastError } from '../../src/contract/error.ts';
import { toolErrorResult } from '../../src/gateway/error-mapping.ts';
import type { GatewayLog } from '../../src/gateway/log.ts';
import {
  createTaskResult as createTaskResultFor,
  detailedTask as detailedTaskFor,
} from '../../src/gateway/tasks/wire-task.ts';
import { toolResult as toolResultFor } from '../../src/gateway/tool-result.ts';
import type { TaskEffect, TaskStatus } from '../../src/task/outcome.ts';

const answer = (change: Partial<TaskAnswer> = {}): TaskAnswer => ({
  taskId: 'task_1',
  operationId: 'op_1',
  action: 'transfer',
  status: 'completed',
  effect: 'applied',
  cause: 'committed',
  replayed: false,
  attached: false,
  autoRetry: true,
  cancelRequested: false,
  result: { receipt: 'r' },
  error: null,
  stale: false,
  statusMessage: 'Done.',
  createdAt: 0,
  updatedAt: 1_000,
  ...change,
});
const principal = { tenant: 'acme', subject: 'ann', roles: [] };
const toolResult = (task: TaskAnswer) => toolResultFor(task, principal);
const detailedTask = (task: TaskAnswer) => detailedTaskFor(task, { principal, canElicit: true });
const createTaskResult = (task: TaskAnswer) => createTaskResultFor(task, { principal, canElicit: true });
const textOf = (change: Partial<TaskAnswer>) =>
  toolResult(answer(change))
    .content.map((block) => (block.type === 'text' ? block.text : ''))
    .join('\n');

const OPEN: TaskStatus[] = [
  'proposed',
  'awaiting_approval',
  'running',
  'reconciling',
  'verifying',
  'backing_off',
  'rolling_back',
  'needs_attention',
];

describe('a completed task as a tool result', () => {
  it('says that it was executed with edited arguments, and what the original ones were [case 22]', () => {
    const editedFrom = {
      fingerprint: 'f'.repeat(64),
      executed: 'e'.repeat(64),
      by: 'bob',
      callId: 'action#1',
    };
    const result = toolResult(answer({ editedFrom }));
    expect(result).toMatchObject({ _meta: { 'holdfast/task': { editedFrom } } });
    expect(result.content[0]).toEqual({ type: 'text', text: '{"receipt":"r"}' });
    const text = textOf({ editedFrom });
    expect(text).toMatch(/Executed with edited arguments: bob/);
    expect(text).toContain(editedFrom.fingerprint);
    expect(text).toMatch(/do not make it again with the original arguments/);
  });

  it('is the action’s result, first and alone [M1.5]', () => {
    expect(toolResult(answer())).toEqual({
      content: [{ type: 'text', text: '{"receipt":"r"}' }],
      structuredContent: { receipt: 'r' },
      _meta: {
        'holdfast/task': {
          taskId: 'task_1',
          operationId: 'op_1',
          status: 'completed',
          effect: 'applied',
          cause: 'committed',
          replayed: false,
          attached: false,
          autoRetry: true,
        },
      },
    });
  });

  it.each([
    ['plain words', 'plain words'],
    [[1, 2], '[1,2]'],
    [null, 'null'],
    [7, '7'],
  ])('that is no object is text alone: %j', (result, text) => {
    const shown = toolResult(answer({ result }));
    expect(shown.content[0]).toEqual({ type: 'text', text });
    expect(shown).not.toHaveProperty('structuredContent');
  });

  it('says what is special about it after the result [M1.3] [S7.4]', () => {
    expect(textOf({ replayed: true })).toMatch(/^\{"receipt":"r"\}\nReplayed: .*Nothing was sent now/);
    expect(textOf({ cancelRequested: true })).toMatch(/effect had already taken place and stands/);
  });

  it('with a result too large to keep, or one that can not be shown exactly, says done and not to call again [M1.6]', () => {
    expect(textOf({ result: null, resultDropped: { sha256: 'ab', bytes: 99 } })).toMatch(
      /^Done\..*99 bytes.*Do not call transfer again/,
    );
    const inexact = answer({ result: { total: 2 ** 60 } });
    expect(textOf(inexact)).toMatch(/^Done\..*\/total.*string.*Do not call transfer again/);
    expect(JSON.stringify(toolResult(inexact))).not.toContain(String(2 ** 60));
    expect(toolResult(inexact).isError).toBeUndefined();
  });
});

describe('a task that ended otherwise', () => {
  it.each([
    ['none', /nothing was changed/],
    ['rolled_back', /took place and was undone/],
    ['applied', /took place and stands.*Do not call it again/],
    ['unknown', /OUTCOME UNKNOWN.*not known to be done, not known to have failed.*Do not call it again/],
  ] as [TaskEffect, RegExp][])('with effect %s says so, and what to do [M1.5]', (effect, words) => {
    const error = { code: 'verify_failed', message: 'the book says otherwise' };
    const shown = toolResult(
      answer({ status: 'failed', effect, cause: 'verify_failed', result: null, error }),
    );
    expect(shown).toMatchObject({
      isError: true,
      structuredContent: {
        error: { ...error, retryable: false, action: expect.any(String) as string },
        task: { effect },
      },
    });
    expect(textOf({ status: 'failed', effect, error })).toMatch(words);
    expect(textOf({ status: 'failed', effect, error })).toContain('What to do:');
  });

  it('by a cancel is an error of that code [S7.4]', () => {
    const shown = toolResult(
      answer({ status: 'cancelled', effect: 'none', cause: 'cancelled', result: null }),
    );
    expect(shown).toMatchObject({ isError: true, structuredContent: { error: { code: 'cancelled' } } });
  });

  it('with a handler’s own code keeps it', () => {
    const error = { code: 'card_declined', message: 'no', details: { reason: 'limit' } };
    expect(toolResult(answer({ status: 'failed', effect: 'none', error }))).toMatchObject({
      structuredContent: { error },
    });
  });
});

describe('an open task as a tool result', () => {
  it.each(OPEN)(
    'in status %s is its handle: not done, not failed, do not call again, ask for it [M1.5] [M3.1]',
    (status) => {
      const shown = toolResult(answer({ status, effect: null, cause: null, result: null }));
      expect(shown.isError).toBeUndefined();
      expect(shown).toMatchObject({
        structuredContent: {
          done: false,
          failed: false,
          callAgain: false,
          task: { taskId: 'task_1', status },
          next: { tool: 'task_wait', arguments: { taskId: 'task_1' } },
        },
      });
      const text = textOf({ status, effect: null, cause: null, result: null });
      expect(text).toMatch(/not done and it has not failed/);
      expect(text).toMatch(/Do not call transfer again/);
      expect(text).toMatch(/task_wait.*"taskId": "task_1"/);
    },
  );

  it.each(['reconciling', 'needs_attention'] as TaskStatus[])(
    'in status %s has an unknown outcome, and says that first [M1.5]',
    (status) => {
      expect(toolResult(answer({ status, effect: null, result: null }))).toMatchObject({
        structuredContent: { code: 'outcome_unknown' },
      });
      expect(textOf({ status, effect: null, result: null })).toMatch(/^OUTCOME UNKNOWN/);
    },
  );

  it('that could not be read just now says so [M2.2]', () => {
    expect(textOf({ status: 'running', effect: null, stale: true })).toMatch(/last known state/i);
  });
});

describe('a task of the Tasks extension', () => {
  it.each([...OPEN, 'completed', 'failed', 'cancelled'] as TaskStatus[])(
    'in status %s has the wire’s shape [M2.2]',
    (status) => {
      const error = status === 'failed' ? { code: 'permanent_failure', message: 'no' } : null;
      const task = answer({
        status,
        error,
        ...(OPEN.includes(status) && { effect: null, cause: null, result: null }),
      });
      expect(isDetailedTaskV2(detailedTask(task))).toBe(true);
      expect(isCreateTaskResultV2(createTaskResult(task))).toBe(true);
      expect(createTaskResult(task)).not.toHaveProperty('result');
      expect(detailedTask(task).status).toBe(
        OPEN.includes(status) ? 'working' : status === 'failed' ? 'completed' : status,
      );
    },
  );

  it.each([
    ['closed in the engine', { cause: 'engine_closed' as const }, 'failed', 'engine_closed'],
    ['given up by a person', { cause: 'abandoned' as const, error: { code: 'operation_abandoned', message: 'm' } }, 'completed', 'operation_abandoned'], // prettier-ignore
  ])('that was %s is told from a failure of the tool [M2.2]', (_how, change, status, code) => {
    const ended = answer({ status: 'failed', effect: 'none', result: null, ...change });
    expect(isDetailedTaskV2(detailedTask(ended))).toBe(true);
    const task = detailedTask(ended) as {
      error?: { data: object };
      result?: { structuredContent?: unknown };
    };
    expect(task).toMatchObject({ status });
    const told =
      status === 'failed' ? task.error?.data : (task.result?.structuredContent as { error: object }).error;
    expect(told).toMatchObject({ code });
    expect(textOf(ended)).toContain(`${code}:`);
  });

  it('is `failed` with a JSON-RPC error for a defect of ours alone [M2.2]', () => {
    const error = { code: 'internal_error', message: 'a defect' };
    const task = detailedTask(answer({ status: 'failed', effect: 'none', result: null, error }));
    expect(isDetailedTaskV2(task)).toBe(true);
    expect(task).toMatchObject({ status: 'failed', error: { code: -32603, data: error } });
    expect(task).not.toHaveProperty('result');
  });

  it('is polled less often the older it is, and when a person is waited for', () => {
    const interval = (change: Partial<TaskAnswer>) =>
      createTaskResult(answer({ status: 'running', ...change })).pollIntervalMs;
    expect([interval({}), interval({ updatedAt: 30_000 }), interval({ updatedAt: 600_000 })]).toEqual([
      250, 1_000, 5_000,
    ]);
    expect(interval({ status: 'needs_attention' })).toBe(5_000);
  });
});

describe('an error of a call that may have begun', () => {
  const log = { error: () => undefined } as unknown as GatewayLog;

  it('names its task where nobody says whether that was started [M1.5]', () => {
    const details = { taskId: 'task_1', operationId: 'op_1', autoRetry: true };
    const result = toolErrorResult(
      new HoldfastError('engine_unavailable', 'away', { details }),
      log,
      'transfer',
    );
    expect(result).toMatchObject({
      isError: true,
      structuredContent: { error: { code: 'engine_unavailable', retryable: true } },
      _meta: { 'holdfast/task': { ...details, status: 'proposed', effect: null, stale: true } },
    });
  });

  it('names none where there is none', () => {
    const result = toolErrorResult(new HoldfastError('engine_unavailable', 'away'), log, 'transfer');
    expect(result._meta).toBeUndefined();
  });
});
