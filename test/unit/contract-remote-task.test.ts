import { expect, test } from 'vitest';
import { remoteTask, remoteTaskIn } from '../../src/contract/handlers.ts';

const HANDLE = { server: 'files', tool: 'archive', taskId: 't-1', pollIntervalMs: 1_000, ttlMs: null };

test('[M8.4] a task of another server is told from a result by a mark that no JSON can have', () => {
  expect(remoteTaskIn(remoteTask(HANDLE))).toEqual(HANDLE);
  const asJson: unknown = JSON.parse(JSON.stringify(remoteTask(HANDLE)));
  for (const result of [asJson, HANDLE, { ...HANDLE }, null, 'holdfast/remoteTask', 7, [HANDLE]])
    expect(remoteTaskIn(result), JSON.stringify(result)).toBeNull();
});

test('[M8.4] the handle is kept as it was when it was given', () => {
  const handle = { ...HANDLE };
  const started = remoteTask(handle);
  handle.taskId = 'another';
  expect(remoteTaskIn(started)).toEqual(HANDLE);
});
