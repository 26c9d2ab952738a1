/** What MCP says of an approval, whom it asks, and what it does with the answer. */
import { isCreateTaskResultV2, isDetailedTaskV2 } from '@modelcontextprotocol/ext-tasks/core/v2';
import { describe, expect, it } from 'vitest';
import type { ApprovalView, TaskAnswer } from '../../src/client/task-client.ts';
import {
  answerableApproval,
  approvalFacts,
  approvalQuestion,
  personsAnswer,
  questionText,
} from '../../src/gateway/approval.ts';
import { createTaskResult, detailedTask } from '../../src/gateway/tasks/wire-task.ts';
import { toolResult } from '../../src/gateway/tool-result.ts';
import { LOCAL, openApproval } from '../support/driven-gateway.ts';

const waiting = (
  approval: Partial<ApprovalView> | null = {},
  change: Partial<TaskAnswer> = {},
): TaskAnswer => ({
  taskId: 'task_1',
  operationId: 'op_1',
  action: 'transfer',
  status: 'awaiting_approval',
  effect: 'none',
  cause: null,
  replayed: false,
  attached: false,
  autoRetry: true,
  cancelRequested: false,
  result: null,
  error: null,
  stale: false,
  statusMessage: 'Waiting for a person’s decision.',
  createdAt: 0,
  updatedAt: 1_000,
  approval: approval === null ? null : openApproval(approval),
  ...change,
});
const asker = { principal: LOCAL, canElicit: true };
const textOf = (answer: TaskAnswer) =>
  toolResult(answer, LOCAL)
    .content.map((block) => (block.type === 'text' ? block.text : ''))
    .join('\n');

describe('an approval that policy lets this connection answer', () => {
  it('is a task’s input_required, one question under its callId, in the wire’s shape [M2.3] [M7.3]', () => {
    const task = detailedTask(waiting(), asker);
    expect(isDetailedTaskV2(task)).toBe(true);
    expect(task).toMatchObject({
      status: 'input_required',
      inputRequests: {
        'action#1': {
          method: 'elicitation/create',
          params: {
            requestedSchema: {
              properties: { decision: { enum: ['approve', 'reject'] }, reason: { type: 'string' } },
              required: ['decision'],
            },
          },
        },
      },
    });
    const created = createTaskResult(waiting(), asker);
    expect(isCreateTaskResultV2(created)).toBe(true);
    expect(created).toMatchObject({ status: 'input_required' });
    expect(created).not.toHaveProperty('inputRequests');
  });

  it('is asked with what will happen: action, redacted arguments, precondition as read, rollback [M2.3] [S4.7]', () => {
    const text = questionText(waiting(), openApproval());
    expect(text).toContain('Action: transfer');
    expect(text).toContain('Arguments: {"to":"bob","amount":5,"pin":"[redacted]"}');
    expect(text).toContain('"kind":"fails","reason":"account is frozen"');
    expect(text).toContain('Rollback: {"kind":"inBand"}');
    expect(text).toContain('Nothing was sent yet');
  });

  it('names the action that is carried out, of a procedure the step’s; its own question carries out none [S4.1] [S4.7]', () => {
    const asked = (action: string) => {
      const answer = waiting({ action }, { action: 'book_trip' });
      return {
        text: questionText(answer, openApproval({ action })),
        facts: approvalFacts(openApproval({ action })),
        form: JSON.stringify(approvalQuestion(answer, openApproval({ action }))),
      };
    };
    const step = asked('book_hotel');
    expect(step.text).toMatch(/^book_trip waits .*Nothing of this step was sent yet/);
    expect(step.text).toContain('\nAction: book_hotel\n');
    expect(step.facts).toMatchObject({ action: 'book_hotel' });
    expect(step.form).toContain('book_hotel is carried out with exactly these arguments');
    const gate = asked('holdfast_approval');
    expect(gate.text).toContain('Action: none');
    expect(gate.form).toContain('approve: book_trip goes on from here');
  });

  it('is asked in words that no argument can forge or flood [M2.3]', () => {
    const note = 'x\nRollback: none\u202e'.padEnd(9_000, 'y');
    const text = questionText(waiting(), openApproval({ view: { arguments: { note } } }));
    expect(text.split('\n').filter((line) => line.startsWith('Rollback:'))).toEqual(['Rollback: null']);
    expect(text).not.toContain('\u202e');
    expect(text).toContain('holdfast task show task_1');
    expect(text.length).toBeLessThan(6_000);
  });

  it('tells clients that take no forms, in words, to ask a person and to pass on the decision [M3.1] [M3.2]', () => {
    expect(toolResult(waiting(), LOCAL)).toMatchObject({
      structuredContent: {
        code: 'awaiting_approval',
        done: false,
        failed: false,
        callAgain: false,
        approval: { callId: 'action#1', arguments: { to: 'bob' } },
        next: { tool: 'task_answer', arguments: { taskId: 'task_1', callId: 'action#1' } },
      },
    });
    expect(textOf(waiting())).toMatch(
      /WAITING FOR A DECISION.*not done.*not failed.*Do not call transfer again.*task_answer.*Never decide for them/s,
    );
    expect(detailedTask(waiting(), { ...asker, canElicit: false })).toMatchObject({ status: 'working' });
  });
});

const ELSEWHERE: [string, TaskAnswer][] = [
  ['policy keeps it off this channel', waiting({ mayAnswerOverMcp: false })],
  ['a challenge must be typed', waiting({ challenge: 'transfer bob 5' })],
  ['the requester may not decide', waiting({ requesterMayDecide: false })],
  ['a role is needed that the caller has not', waiting({ roles: ['finance'] })],
  ['another approver is needed besides the caller', waiting({ quorum: 2, approvedBy: [LOCAL.subject] })],
];

describe('approvals that a procedure opened at once', () => {
  const both = (other: Partial<ApprovalView> = {}) =>
    waiting({ callId: 'budget#1' }, { otherApprovals: [openApproval({ callId: 'date#1', ...other })] });

  it('are all asked of a client with Tasks, each under its own key [M2.3] [S4.1]', () => {
    const task = detailedTask(both(), asker);
    expect(isDetailedTaskV2(task)).toBe(true);
    expect(Object.keys((task as { inputRequests: object }).inputRequests)).toEqual(['budget#1', 'date#1']);
  });

  it('are asked as far as policy leaves them to this connection [M2.3] [M7.3]', () => {
    const task = detailedTask(both({ challenge: 'type this' }), asker);
    expect(Object.keys((task as { inputRequests: object }).inputRequests)).toEqual(['budget#1']);
    expect(JSON.stringify(task)).not.toContain('type this');
    const other = waiting(
      { callId: 'budget#1', roles: ['boss'] },
      { otherApprovals: [openApproval({ callId: 'date#1' })] },
    );
    expect(answerableApproval(other, LOCAL)?.callId).toBe('date#1');
  });
});

describe('an approval that is decided elsewhere', () => {
  it.each(ELSEWHERE)(
    'since %s is `working`, with words on who decides and how [M2.3] [M7.3]',
    (_why, answer) => {
      const task = detailedTask(answer, asker);
      expect(isDetailedTaskV2(task)).toBe(true);
      expect(task.status).toBe('working');
      expect(task).not.toHaveProperty('inputRequests');
      expect(task.statusMessage).toMatch(/person.*holdfast task approve task_1/);
      expect(textOf(answer)).toMatch(
        /a person must decide.*holdfast task approve task_1.*Do not call transfer again/s,
      );
      expect(toolResult(answer, LOCAL)).toMatchObject({
        structuredContent: { next: { tool: 'task_get', arguments: { taskId: 'task_1' } } },
      });
    },
  );

  it('never shows its challenge to the connection that asked [S4.6] [M7.3]', () => {
    const answer = waiting({ challenge: 'transfer bob 5' });
    const all = JSON.stringify([detailedTask(answer, asker), toolResult(answer, LOCAL)]);
    expect(all).not.toContain('transfer bob 5');
  });

  it('names the roles that may decide, and how many have', () => {
    const text = textOf(waiting({ roles: ['finance', 'risk'], quorum: 2, approvedBy: ['eve'] }));
    expect(text).toMatch(/role finance or risk.*1 of 2/s);
  });

  it.each([
    ['is still being prepared', waiting(null)],
    ['is about to be closed by a cancel', waiting({}, { cancelRequested: true })],
  ])('and one that %s is asked of nobody [M2.3]', (_what, answer) => {
    expect(answerableApproval(answer, LOCAL)).toBeNull();
    expect(detailedTask(answer, asker).status).toBe('working');
  });
});

describe('a person’s answer', () => {
  const read = (response: unknown) => personsAnswer({ 'action#1': response }, 'action#1');
  it('is a decision with its reason, none when the form was dismissed, and else unusable [M2.3]', () => {
    const accept = (content: unknown) => read({ action: 'accept', content });
    expect(accept({ decision: 'approve' })).toEqual({ kind: 'decision', decision: 'approve' });
    expect(accept({ decision: 'reject', reason: 'no' })).toEqual({
      kind: 'decision',
      decision: 'reject',
      reason: 'no',
    });
    expect([read({ action: 'decline' }), read({ action: 'cancel' })]).toEqual([
      { kind: 'none' },
      { kind: 'none' },
    ]);
    expect(accept({ confirm: true })).toEqual({ kind: 'decision', decision: 'approve' });
    expect(accept({ confirm: false, reason: 'no' })).toMatchObject({ decision: 'reject' });
    const unusable = [
      accept({ decision: 'approve', confirm: false }),
      accept({ confirm: 'yes' }),
      ...[accept({ decision: 'yes' }), accept({}), accept(undefined), read(7), read(null)],
    ];
    expect(unusable).toEqual(unusable.map(() => ({ kind: 'unusable' })));
    expect(accept({ decision: 'approve', reason: 'x'.repeat(1_001) }).kind).toBe('unusable');
    expect(personsAnswer(undefined, 'action#1').kind).toBe('unusable');
    expect(personsAnswer({}, 'constructor').kind).toBe('unusable');
  });
});
