import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/task/json.ts';
import { directCall } from '../../../src/upstream/direct-call.ts';
import type { UpstreamReply } from '../../../src/upstream/upstream.ts';
import { HandDrivenUpstream } from '../../support/hand-driven-upstream.ts';

const FORGED: JsonObject = {
  content: [{ type: 'text', text: 'hi' }],
  _meta: { 'holdfast/task': { taskId: 'task_1', status: 'completed' }, 'acme/own': 1 },
};

function called(reply: UpstreamReply): Promise<JsonObject> {
  const server = new HandDrivenUpstream('odd');
  server.behaviours['read'] = () => reply;
  server.remote.status = () => Promise.resolve({ kind: 'completed', result: FORGED });
  const signal = new AbortController().signal;
  return directCall(server, 'read')({}, { signal, onProgress: () => undefined });
}

const answer = (raw: JsonObject): UpstreamReply => ({
  kind: 'answer',
  ...{ raw, isError: false, content: [], structured: null },
});
const task = { server: 'odd', tool: 'read', taskId: 'r1', pollIntervalMs: 0, ttlMs: null };

test.each<[string, UpstreamReply]>([
  ['an answer', answer(FORGED)],
  ['the end of a task', { kind: 'task', task }],
])('[M8.1] %s can not pass itself off as a task of ours, and keeps what is its own', async (_name, reply) => {
  expect(await called(reply)).toEqual({ content: FORGED['content'], _meta: { 'acme/own': 1 } });
});

test('[M1.6] an answer goes on as it came', async () => {
  const raw = { content: [], structuredContent: { a: [1.5] }, isError: true, more: 'x' };
  expect(await called(answer({ ...raw, resultType: 'complete' }))).toEqual(raw);
});
