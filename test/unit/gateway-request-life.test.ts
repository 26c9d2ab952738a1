import fc from 'fast-check';
import { describe, expect, it, vi } from 'vitest';
import type { Caller } from '../../src/gateway/caller.ts';
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts';
import { inRequest } from '../../src/gateway/open-request.ts';
import type { OpenRequest } from '../../src/gateway/open-request.ts';
import { dueAt, isOver, lifeAfter, opened } from '../../src/gateway/request-life.ts';
import type { RequestEvent, RequestLife } from '../../src/gateway/request-life.ts';
import { deferred } from '../support/deferred.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import { callerWith } from '../support/past-the-sdk.ts';
import { holds } from '../support/property.ts';

const CLOCKS = { idleMs: 500, maximumMs: 2_000 };

type Happening = RequestEvent & { at: number };

const PROGRESS: RequestEvent = { kind: 'progress' };
const COMPLETION: RequestEvent = { kind: 'completion' };
const CANCEL: RequestEvent = { kind: 'leaving', isCancel: true };
const DISCONNECT: RequestEvent = { kind: 'leaving', isCancel: false };
const SHUTDOWN: RequestEvent = { kind: 'shutdown' };
const TIME: RequestEvent = { kind: 'time' };

const happenings: fc.Arbitrary<Happening[]> = fc
  .array(
    fc.record({
      event: fc.oneof(
        { weight: 6, arbitrary: fc.constant(PROGRESS) },
        { weight: 3, arbitrary: fc.constantFrom(COMPLETION, CANCEL, DISCONNECT, SHUTDOWN, TIME) },
      ),
      restMs: fc.integer({ min: 0, max: 600 }),
    }),
    { maxLength: 14 },
  )
  .map((steps) => {
    let at = 0;
    return steps.map(({ event, restMs }) => ({ ...event, at: (at += restMs) }));
  });

/** Every state from the opening on, with what made it. */
function follow(given: Happening[]): { life: RequestLife; by: Happening | null }[] {
  const states: { life: RequestLife; by: Happening | null }[] = [{ life: opened(0), by: null }];
  for (const by of given) {
    const { life } = states.at(-1) as { life: RequestLife };
    states.push({ life: lifeAfter(life, by, by.at, CLOCKS), by });
  }
  return states;
}
const endOf = (...given: [RequestEvent, number][]) =>
  follow(given.map(([event, at]) => ({ ...event, at }))).at(-1)?.life;

describe('the life of a request, in every order of events', () => {
  it('has one end at most, and nothing changes it [M5.2]', () => {
    holds('request-life: one end', happenings, (given) => {
      const ends = follow(given).filter(({ life }) => isOver(life));
      for (const { life } of ends) expect(life).toBe(ends[0]?.life);
    });
  });

  it('ends with whichever comes first, its answer or the caller’s leaving [M5.2]', () => {
    holds('request-life: the first wins', happenings, (given) => {
      const first = given.find(({ kind }) => kind === 'completion' || kind === 'leaving');
      const end = follow(given).at(-1)?.life;
      if (first === undefined) expect(end !== undefined && isOver(end)).toBe(false);
      else expect(end?.kind).toBe(first.kind === 'completion' ? 'answered' : 'left');
    });
  });

  it('is over at the maximum whatever is told before, and at the idle limit after the last that was [M4.1]', () => {
    holds('request-life: two clocks', happenings, (given) => {
      let heardAt = 0;
      for (const { life, by } of follow(given)) {
        if (by === null) continue;
        const isDue = by.at >= CLOCKS.maximumMs || by.at >= heardAt + CLOCKS.idleMs;
        if (isDue) expect(life.kind).not.toBe('open');
        if (life.kind === 'open') {
          expect(life.openedAt).toBe(0);
          if (by.kind === 'progress') heardAt = by.at;
          expect(life.heardAt).toBe(heardAt); // and nothing else resets it
          expect(dueAt(life, CLOCKS)).toBe(Math.min(2_000, heardAt + 500));
        } else expect(dueAt(life, CLOCKS)).toBeNull();
      }
    });
  });

  it('a cut after our own shutdown began is no cancel, nor is a disconnect that means none [M5.4] [M5.1]', () => {
    holds('request-life: no cancel by shutdown', happenings, (given) => {
      const end = follow(given).at(-1)?.life;
      if (end?.kind !== 'left' || !end.isCancel) return;
      const leaving = given.findIndex(({ kind }) => kind === 'leaving');
      expect(given[leaving]).toMatchObject({ isCancel: true });
      expect(given.slice(0, leaving).some(({ kind }) => kind === 'shutdown')).toBe(false);
    });
  });

  it.each([
    [
      'progress at 1,999 ms does not save a maximum of 2,000',
      [
        [PROGRESS, 499],
        [PROGRESS, 998],
        [PROGRESS, 1_497],
        [PROGRESS, 1_996],
        [PROGRESS, 1_999],
        [TIME, 2_000],
      ],
      { kind: 'closing', why: 'maximum' },
    ],
    [
      'progress at 499 ms saves an idle limit of 500',
      [
        [PROGRESS, 499],
        [TIME, 998],
      ],
      { kind: 'open', heardAt: 499 },
    ],
    ['progress at 500 ms does not', [[PROGRESS, 500]], { kind: 'closing', why: 'idle' }],
    [
      'time alone resets nothing',
      [
        [TIME, 499],
        [TIME, 500],
      ],
      { kind: 'closing', why: 'idle' },
    ],
    [
      'what a clock ended is answered',
      [
        [TIME, 500],
        [COMPLETION, 501],
      ],
      { kind: 'answered', after: 'idle' },
    ],
    [
      'or left, if the caller is faster than the answer',
      [
        [TIME, 500],
        [CANCEL, 501],
        [COMPLETION, 502],
      ],
      { kind: 'left', isCancel: true },
    ],
    [
      'cancel first: no answer',
      [
        [CANCEL, 1],
        [COMPLETION, 2],
      ],
      { kind: 'left', isCancel: true },
    ],
    [
      'answer first: the late cancel is ignored',
      [
        [COMPLETION, 1],
        [CANCEL, 2],
      ],
      { kind: 'answered', after: null },
    ],
    [
      'shutdown first: the cut cancels nothing',
      [
        [SHUTDOWN, 1],
        [CANCEL, 2],
      ],
      { kind: 'left', isCancel: false },
    ],
    [
      'shutdown after a clock: neither',
      [
        [TIME, 500],
        [SHUTDOWN, 501],
        [CANCEL, 502],
      ],
      { kind: 'left', isCancel: false },
    ],
  ] as [string, [RequestEvent, number][], object][])('%s [M4.1] [M5.2]', (_what, given, end) => {
    expect(endOf(...given)).toMatchObject(end);
  });
});

/** The same, carried out: with the caller's own signal, our shutdown, a clock, and progress that goes somewhere. */
function setUp(change: Partial<Caller> = {}, clock = new HandDrivenClock()) {
  const leave = new AbortController();
  const shutdown = new AbortController();
  const sent: number[] = [];
  const caller = callerWith({
    signal: leave.signal,
    progressToken: 0,
    sendProgress: ({ progress }) => Promise.resolve(void sent.push(progress)),
    ...change,
  });
  const limits = { ...DEFAULT_LIMITS, idleMs: 500, blockingMs: 2_000, progressIntervalMs: 0 };
  const work = deferred<string>();
  const givenUp = vi.fn();
  let request: OpenRequest | undefined;
  const answer = inRequest({ limits, clock, shutdown: shutdown.signal }, caller, (open) => {
    request = open;
    open.onCancel(givenUp);
    return work.promise;
  });
  answer.catch(() => undefined);
  return { clock, leave, shutdown, sent, answer, work, givenUp, request: request as OpenRequest };
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a request under way', () => {
  it('cancelled first is answered nothing, gives up what it had, and tells nothing more [M5.2] [M4.2] [mode 2]', async () => {
    const { leave, answer, work, sent, givenUp, request, clock } = setUp();
    request.report('one');
    await settled();
    leave.abort(new Error('cancelled'));
    expect(request.over.aborted).toBe(true);
    request.report('two');
    work.resolve('too late');
    await expect(answer).rejects.toThrow('cancelled');
    expect(givenUp).toHaveBeenCalledOnce();
    expect(sent).toEqual([1]);
    expect(clock.pending).toBe(0);
  });

  it('answered first ignores the late cancel, and gives up nothing [M5.2]', async () => {
    const { leave, answer, work, sent, givenUp, request } = setUp();
    work.resolve('done');
    expect(await answer).toBe('done');
    leave.abort(new Error('cancelled'));
    request.report('late');
    await settled();
    expect(givenUp).not.toHaveBeenCalled();
    expect(sent).toEqual([]);
  });

  it.each(['answered', 'left'] as const)('that was %s holds no timer and hears no shutdown', async (how) => {
    const { leave, shutdown, answer, work, clock, request } = setUp();
    if (how === 'left') leave.abort(new Error('gone'));
    work.resolve('done');
    await answer.catch(() => undefined);
    const before = request.over.aborted;
    shutdown.abort();
    expect(request.over.aborted).toBe(before);
    expect(clock.pending).toBe(0);
  });

  it('is over at its maximum though progress was sent just before, and then tells nothing more [M4.1] [M4.2]', async () => {
    const { clock, request, sent, answer, work } = setUp();
    for (const at of [400, 800, 1_200, 1_600, 1_999]) {
      clock.pass(at - clock.now());
      request.report(`at ${at}`);
      await settled();
    }
    expect(sent).toEqual([1, 2, 3, 4, 5]);
    expect(request.over.aborted).toBe(false);
    clock.pass(1);
    expect(request.over.reason).toMatchObject({ kind: 'closing', why: 'maximum' });
    request.report('late');
    await settled();
    expect(sent).toHaveLength(5);
    work.resolve('the handle');
    expect(await answer).toBe('the handle');
  });

  it('is over at its idle limit where nothing was sent, whatever was reported without a token [M4.1]', async () => {
    const { clock, request } = setUp({ progressToken: undefined });
    clock.pass(499);
    request.report('to nobody');
    await settled();
    expect(request.over.aborted).toBe(false);
    clock.pass(1);
    expect(request.over.reason).toMatchObject({ why: 'idle' });
  });

  it('is over all the same where its timer fires before the time, as timers may [M4.1]', () => {
    class EarlyClock extends HandDrivenClock {
      override after(delayMs: number, action: () => void): () => void {
        return super.after(Math.max(delayMs - 1, 0.5), action);
      }
    }
    const clock = new EarlyClock();
    const { request } = setUp({}, clock);
    clock.pass(499.4);
    expect(request.over.aborted).toBe(false);
    clock.pass(1);
    expect(request.over.reason).toMatchObject({ why: 'idle' });
  });

  it('that our shutdown cut gives up nothing [M5.4]', async () => {
    const { leave, shutdown, answer, work, givenUp, request } = setUp();
    shutdown.abort();
    expect(request.over.reason).toMatchObject({ why: 'shutdown' });
    leave.abort(new Error('Connection closed'));
    work.resolve('unread');
    await expect(answer).rejects.toThrow('Connection closed');
    expect(givenUp).not.toHaveBeenCalled();
  });

  it('whose work fails is answered by the failure, unless its caller has left [M5.2]', async () => {
    const failing = (client: AbortController | null) =>
      inRequest(
        { limits: DEFAULT_LIMITS, clock: new HandDrivenClock(), shutdown: new AbortController().signal },
        { ...setUp().request.caller, ...(client && { signal: client.signal }) },
        () => {
          client?.abort(new Error('gone'));
          return Promise.reject(new Error('broken'));
        },
      );
    await expect(failing(null)).rejects.toThrow('broken');
    await expect(failing(new AbortController())).rejects.toThrow('gone');
  });

  it('begun by a caller who has left already gives up at once', async () => {
    const gone = AbortSignal.abort(new Error('gone'));
    const { givenUp, answer, work } = setUp({ signal: gone });
    expect(givenUp).toHaveBeenCalledOnce();
    work.resolve('unread');
    await expect(answer).rejects.toThrow('gone');
  });
});
