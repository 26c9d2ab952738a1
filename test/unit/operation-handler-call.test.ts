/** A handler's call is over when its time is, whatever the handler does (S5.3). */
import { getEventListeners } from 'node:events';
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { ActionFailure } from '../../src/contract/handlers.ts';
import { callHandler } from '../../src/operation/handler-call.ts';
import { deferred } from '../support/deferred.ts';

const limits = (overrides: { limitMs?: number; graceMs?: number; signals?: AbortSignal[] } = {}) => ({
  limitMs: 10_000,
  graceMs: 10_000,
  signals: [],
  ...overrides,
});
const onAbort = (signal: AbortSignal) =>
  new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));

describe('a call of a handler', () => {
  test('[S2.5] answers what it returned, or how it failed', async () => {
    expect(await callHandler(limits(), () => Promise.resolve(7))).toEqual({ kind: 'returned', value: 7 });
    expect(await callHandler(limits(), () => Promise.reject(ActionFailure.notSent('down')))).toMatchObject({
      kind: 'threw',
      failure: { kind: 'notApplied' },
    });
    const thrown = await callHandler(limits(), () => {
      throw new TypeError('a bug');
    });
    expect(thrown).toMatchObject({ kind: 'threw', failure: { kind: 'unknown', message: 'a bug' } });
  });

  test('[S5.3] its signal aborts at its deadline, and it may still answer', async () => {
    const answer = await callHandler(limits({ limitMs: 5 }), async (signal) => {
      await onAbort(signal);
      return 'just in time';
    });
    expect(answer).toEqual({ kind: 'returned', value: 'just in time' });
  });

  test('[S5.3] what an aborted handler throws is told as what aborted it, unless it knows better', async () => {
    const timedOut = await callHandler(limits({ limitMs: 5 }), async (signal) => {
      await onAbort(signal);
      throw new Error('This operation was aborted');
    });
    expect(timedOut).toMatchObject({
      kind: 'threw',
      failure: { kind: 'unknown', message: 'The handler gave no answer within 5 ms.' },
    });
    const stopped = await callHandler(
      limits({ signals: [AbortSignal.abort(new Error('cancel'))] }),
      (signal) => Promise.reject(signal.reason as Error),
    );
    expect(stopped).toMatchObject({
      failure: { kind: 'unknown', message: 'The handler was stopped before it answered.' },
    });
    const knowing = await callHandler(limits({ limitMs: 5 }), async (signal) => {
      await onAbort(signal);
      throw ActionFailure.permanent('closed for good');
    });
    expect(knowing).toMatchObject({ failure: { kind: 'permanent' } });
  });

  test('[S2.7] deaf to its signal it is left behind, and its late answer is handed on', async () => {
    const finish = deferred<number>();
    const answer = await callHandler(limits({ limitMs: 2, graceMs: 2 }), () => finish.promise);
    expect(answer).toMatchObject({ kind: 'leftBehind', failure: { kind: 'unknown' } });
    finish.resolve(7);
    expect(answer.kind === 'leftBehind' && (await answer.late)).toEqual({ kind: 'returned', value: 7 });
  });

  test('[S2.7] a late failure is handed on too, and never unhandled', async () => {
    const finish = deferred();
    const answer = await callHandler(limits({ limitMs: 2, graceMs: 2 }), async () => {
      await finish.promise;
      throw ActionFailure.notSent('gave up');
    });
    finish.resolve();
    expect(answer.kind === 'leftBehind' && (await answer.late)).toMatchObject({
      kind: 'threw',
      failure: { kind: 'notApplied' },
    });
  });

  test('what it was called with is garbage once it has answered, though it still listens to its signal', async () => {
    const cancel = new AbortController();
    let held: WeakRef<object> | null = null;
    const handler = (signal: AbortSignal): Promise<number> => {
      const much = { bytes: new Uint8Array(1_000) };
      held = new WeakRef(much);
      signal.addEventListener('abort', () => much.bytes.fill(0));
      return Promise.resolve(7);
    };
    await callHandler(limits({ signals: [cancel.signal] }), handler);
    expect(getEventListeners(cancel.signal, 'abort')).toEqual([]);
    await untilCollected(() => held?.deref() === undefined);
  });
});

/** Rejects when it is held after many collections. */
async function untilCollected(isGone: () => boolean): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let tries = 0; tries < 50; tries += 1) {
    await turn();
    collect();
    if (isGone()) return;
  }
  throw new Error('it is held by something');
}
