import { expect, it } from 'vitest';
import { answerTask } from '../../../src/mcp-client/tasks.ts';
import type { Reply } from '../../../src/mcp-client/reply.ts';
import type { JsonObject } from '../../../src/task/json.ts';
import { handDrivenLink, settle } from '../../support/hand-driven-link.ts';

const result = (value: JsonObject): Reply => ({ kind: 'result', result: value });
const away = result({
  content: [{ type: 'text', text: 'away' }],
  isError: true,
  structuredContent: { error: { code: 'engine_unavailable', message: 'away', details: {}, retryable: true } },
});
const reading = (status: string, more: JsonObject = {}): Reply =>
  result({
    content: [],
    structuredContent: {
      approval: { callId: 'action#1' },
      next: { tool: 'task_answer', arguments: { taskId: 'task_1', callId: 'action#1' } },
    },
    _meta: { 'holdfast/task': { taskId: 'task_1', status, effect: 'none', replayed: false, ...more } },
  });
const taken = result({ content: [{ type: 'text', text: 'taken' }] });
const answer = { 'action#1': { action: 'accept', content: { decision: 'approve' } } };

it('an answer that met no engine is given again, though the task reads stale meanwhile and asks nothing then [M6.3] [S4.1]', async () => {
  const replies = [away, away, reading('proposed', { stale: true }), reading('awaiting_approval'), taken];
  const driven = handDrivenLink((_request, nth) => replies[nth - 1] ?? taken);
  const span = { idleMs: 1_000, maximumAt: 60_000 };
  expect(await settle(answerTask(driven.parts, 'task_1', answer, span), driven.clock)).toBe(true);
  expect(driven.requests.map(({ params }) => params.name)).toEqual([
    'task_answer',
    'task_get',
    'task_get',
    'task_get',
    'task_answer',
  ]);
});

it('an answer that was taken, only its acknowledgement lost, is not given again [M6.3]', async () => {
  const lost: Reply = { kind: 'failure', failure: 'lost', message: 'cut' };
  const replies = [lost, reading('running')];
  const driven = handDrivenLink((_request, nth) => replies[nth - 1] ?? taken);
  const span = { idleMs: 1_000, maximumAt: 60_000 };
  expect(await settle(answerTask(driven.parts, 'task_1', answer, span), driven.clock)).toBe(true);
  expect(driven.requests.map(({ params }) => params.name)).toEqual(['task_answer', 'task_get']);
});
