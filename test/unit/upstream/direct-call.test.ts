import { expect, test } from 'vitest';
import type { JsonObject } from '../../../src/task/json.ts';
import { pollMs } from '../../../src/upstream/awaited-task.ts';
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

test.each<[string, HandDrivenUpstream['remote']['status'], string[]]>([
  ['a status that can not be read', () => Promise.reject(new Error('reset')), ['r1']],
  ['a question', () => Promise.resolve({ kind: 'input_required', requests: {} }), ['r1']],
  ['its own end', () => Promise.resolve({ kind: 'failed', message: 'no' }), []],
])('[M8.4] a task that nobody waits for any more is cancelled: %s', async (_name, status, expected) => {
  const server = new HandDrivenUpstream('odd');
  const cancelled: string[] = [];
  server.behaviours['read'] = () => ({ kind: 'task', task });
  Object.assign(server.remote, {
    status,
    cancel: ({ taskId }: typeof task) => Promise.resolve(void cancelled.push(taskId)),
  });
  const signal = new AbortController().signal;
  await expect(directCall(server, 'read')({}, { signal, onProgress: () => undefined })).rejects.toThrow();
  expect(cancelled).toEqual(expected);
});

test('[M8.4] an interval that a server asks for is one that a timer holds', () => {
  expect([0, 2_000, 2 ** 31, Number.MAX_SAFE_INTEGER].map(pollMs)).toEqual([1_000, 2_000, 300_000, 300_000]);
});

test('[M1.6] an answer goes on as it came', async () => {
  const raw = { content: [], structuredContent: { a: [1.5] }, isError: true, more: 'x' };
  expect(await called(answer({ ...raw, resultType: 'complete' }))).toEqual(raw);
});
