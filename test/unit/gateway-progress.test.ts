import { describe, expect, it } from 'vitest';
import { createProgress } from '../../src/gateway/progress.ts';
import type { ProgressToken } from '../../src/gateway/progress.ts';
import { deferred } from '../support/deferred.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';

interface Sent {
  progressToken: ProgressToken;
  progress: number;
  message: string;
}

function reporter(token: ProgressToken | undefined = 't') {
  const clock = new HandDrivenClock();
  const sent: Sent[] = [];
  let gate: Promise<void> | null = null;
  const progress = createProgress({
    token,
    intervalMs: 100,
    clock,
    send: async (params) => {
      sent.push(params);
      await gate;
    },
  });
  return { clock, sent, progress, hold: (promise: Promise<void>) => void (gate = promise) };
}

const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('progress of one request', () => {
  it('goes out at once the first time, then at most every interval, coalesced to the latest [M4.2]', async () => {
    const { clock, sent, progress } = reporter();
    for (const message of ['a', 'b', 'c']) progress.report(message);
    await settled();
    expect(sent).toEqual([{ progressToken: 't', progress: 1, message: 'a' }]);
    clock.pass(99);
    expect(sent).toHaveLength(1);
    clock.pass(1);
    await settled();
    expect(sent.slice(1)).toEqual([{ progressToken: 't', progress: 2, message: 'c' }]);
  });

  it('never exceeds ten a second, however fast it is reported [M4.2]', async () => {
    const { clock, sent, progress } = reporter();
    for (let ms = 0; ms < 1_000; ms += 1) {
      progress.report(`at ${ms}`);
      clock.pass(1);
      await Promise.resolve();
      await Promise.resolve();
    }
    await settled();
    expect(sent.length).toBeLessThanOrEqual(11);
    expect(sent.map(({ progress: value }) => value)).toEqual(sent.map((_each, index) => index + 1));
  });

  it.each([0, 7, '', 'p'])('carries the caller’s own token %o [M4.2]', async (token) => {
    const { sent, progress } = reporter(token);
    progress.report('a');
    await settled();
    expect(sent[0]?.progressToken).toBe(token);
  });

  it('without a token sends nothing [M4.2]', async () => {
    const clock = new HandDrivenClock();
    const progress = createProgress({
      token: undefined,
      intervalMs: 0,
      clock,
      send: () => Promise.reject(new Error('sent')),
    });
    progress.report('a');
    await progress.stop();
    expect(clock.pending).toBe(0);
  });

  it('says the same thing once', async () => {
    const { clock, sent, progress } = reporter();
    progress.report('a');
    await settled();
    progress.report('a');
    clock.pass(1_000);
    await settled();
    expect(sent).toHaveLength(1);
  });

  it('has one send under way at a time, and stop settles only after it: none follows the response [M4.2]', async () => {
    const { clock, sent, progress, hold } = reporter();
    const gate = deferred();
    hold(gate.promise);
    progress.report('a');
    clock.pass(500);
    progress.report('b');
    let isStopped = false;
    const stopping = progress.stop();
    void stopping.then(() => (isStopped = true));
    await settled();
    expect(isStopped).toBe(false);
    gate.resolve();
    await stopping;
    clock.pass(10_000);
    progress.report('c');
    await settled();
    expect(sent.map(({ message }) => message)).toEqual(['a']);
    expect(clock.pending).toBe(0);
  });

  it('falls silent when the connection is gone', async () => {
    const clock = new HandDrivenClock();
    let sends = 0;
    const progress = createProgress({
      token: 1,
      intervalMs: 0,
      clock,
      send: () => Promise.reject(new Error(`gone ${(sends += 1)}`)),
    });
    progress.report('a');
    await settled();
    progress.report('b');
    await settled();
    await progress.stop();
    expect(sends).toBe(1);
  });
});
