import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FrameQueue } from '../../src/gateway/http/frame-queue.ts';
import type { Frame, FrameRole } from '../../src/gateway/http/frame-queue.ts';
import { SseFrame } from '../../src/gateway/http/sse-frame.ts';
import { holds } from '../support/property.ts';

interface NumberedFrame extends Frame {
  at: number;
}

const BOUNDS = { bytesMax: 100, framesMax: 6 };

type Step = { do: 'take' } | { do: 'push'; role: FrameRole; bytes: number };

const role: fc.Arbitrary<FrameRole> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.constantFrom('a', 'b', null).map((subject) => ({ kind: 'replaceable' as const, subject })),
  },
  { weight: 2, arbitrary: fc.constantFrom<FrameRole>({ kind: 'response' }, { kind: 'needed' }) },
  { weight: 1, arbitrary: fc.constant<FrameRole>({ kind: 'comment' }) },
);
const stepsOf = (roles: fc.Arbitrary<FrameRole>): fc.Arbitrary<Step[]> =>
  fc.array(
    fc.oneof(
      {
        weight: 3,
        arbitrary: fc.record({
          do: fc.constant('push' as const),
          role: roles,
          bytes: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 130 })),
        }),
      },
      { weight: 2, arbitrary: fc.constant<Step>({ do: 'take' }) },
    ),
    { maxLength: 60 },
  );
const steps = stepsOf(role);

const isNeeded = ({ role: { kind } }: Frame) => kind === 'response' || kind === 'needed';

/** Runs the steps, then takes what is left. `check` sees the queue after each. */
function run(given: Step[], check: (queue: FrameQueue<NumberedFrame>) => void = () => undefined) {
  const queue = new FrameQueue<NumberedFrame>(BOUNDS);
  const pushed: NumberedFrame[] = [];
  const refused: NumberedFrame[] = [];
  const taken: { frame: NumberedFrame; dropped: number | null }[] = [];
  const take = () => {
    const next = queue.take();
    if (next !== null) taken.push(next);
  };
  for (const [at, step] of given.entries()) {
    if (step.do === 'take') take();
    else {
      const frame = { ...step, at };
      pushed.push(frame);
      if (queue.push(frame) === 'refused') refused.push(frame);
    }
    check(queue);
  }
  while (queue.size > 0) take();
  return { pushed, refused, taken };
}

describe('what waits for one reader', () => {
  it('never exceeds its bounds, but for one needed frame that waits alone [M6.1]', () => {
    holds('frame-queue: bounds', steps, (given) => {
      run(given, (queue) => {
        expect(queue.size).toBeLessThanOrEqual(BOUNDS.framesMax);
        if (queue.bytes > BOUNDS.bytesMax) expect(queue.size).toBe(1);
      });
    });
  });

  it('keeps its order, and every needed frame that was not refused [M6.1]', () => {
    holds('frame-queue: needed frames', steps, (given) => {
      const { pushed, refused, taken } = run(given);
      const order = taken.map(({ frame }) => frame.at);
      expect(order).toEqual([...order].sort((a, b) => a - b));
      const needed = pushed.filter((frame) => isNeeded(frame) && !refused.includes(frame));
      expect(taken.map(({ frame }) => frame).filter(isNeeded)).toEqual(needed);
    });
  });

  it('refuses a needed frame only where it would take the place of another, and all that comes after [M6.1] [mode 10]', () => {
    holds('frame-queue: refusals', steps, (given) => {
      const { pushed, refused } = run(given);
      const first = refused[0];
      if (first === undefined) return;
      expect(isNeeded(first)).toBe(true);
      expect(refused).toEqual(pushed.slice(pushed.indexOf(first)));
    });
    const queue = new FrameQueue<Frame>(BOUNDS);
    const push = (bytes: number) => queue.push({ role: { kind: 'response' }, bytes });
    expect([push(60), push(40), push(1)]).toEqual(['taken', 'taken', 'refused']);
  });

  it('says how many messages were dropped in the next message and in every response, and never otherwise [M6.1]', () => {
    const plain = fc.constantFrom<FrameRole>({ kind: 'replaceable', subject: null }, { kind: 'response' });
    holds('frame-queue: refetch mark', stepsOf(plain), (given) => {
      const queue = new FrameQueue<NumberedFrame>(BOUNDS);
      let accepted = 0;
      let left = 0;
      let told = 0;
      for (const [at, step] of [...given, ...given.map((): Step => ({ do: 'take' }))].entries()) {
        if (step.do === 'push') {
          if (queue.push({ ...step, at }) === 'taken') accepted += 1;
          continue;
        }
        const gone = accepted - left - queue.size;
        const next = queue.take();
        if (next === null) continue;
        left += 1;
        const mustSay = gone > told || (gone > 0 && next.frame.role.kind === 'response');
        expect(next.dropped).toBe(mustSay ? gone : null);
        told = next.dropped ?? told;
      }
    });
  });

  const push = (queue: FrameQueue<NumberedFrame>, kinds: string) => {
    for (const [at, kind] of [...kinds].entries()) {
      const known: Record<string, FrameRole> = { R: { kind: 'response' }, ':': { kind: 'comment' } };
      queue.push({
        at,
        bytes: 10,
        role: known[kind] ?? { kind: 'replaceable', subject: kind === '?' ? null : kind },
      });
    }
  };
  const rest = (queue: FrameQueue<NumberedFrame>) => {
    const all: [number, number | null][] = [];
    for (let next = queue.take(); next !== null; next = queue.take()) all.push([next.frame.at, next.dropped]);
    return all;
  };

  it.each([
    [
      'within its bounds, everything',
      'aaabbb',
      [
        [0, null],
        [1, null],
        [2, null],
        [3, null],
        [4, null],
        [5, null],
      ],
    ],
    [
      'over them, the latest of neighbours about one subject',
      'aaabbba',
      [
        [2, null],
        [5, null],
        [6, null],
      ],
    ],
    [
      'then the newest, and says how many went before them',
      'abababab',
      [
        [2, 2],
        [3, null],
        [4, null],
        [5, null],
        [6, null],
        [7, null],
      ],
    ],
    [
      'what tells no subject, never coalesced',
      '???????',
      [
        [1, 1],
        [2, null],
        [3, null],
        [4, null],
        [5, null],
        [6, null],
      ],
    ],
    [
      'the response, whatever goes for it, which says so again',
      'abababR',
      [
        [1, 1],
        [2, null],
        [3, null],
        [4, null],
        [5, null],
        [6, 1],
      ],
    ],
    [
      'a comment only while there is nothing else',
      ':a:b',
      [
        [1, null],
        [3, null],
      ],
    ],
  ] as [string, string, [number, number | null][]][])('keeps %s [M6.1]', (_what, kinds, kept) => {
    const queue = new FrameQueue<NumberedFrame>(BOUNDS);
    push(queue, kinds);
    expect(rest(queue)).toEqual(kept);
  });

  it('of a reader that keeps up is handed on unread: nothing of it is parsed [M6.1]', () => {
    const queue = new FrameQueue<Frame>(BOUNDS);
    const unread: Frame = {
      bytes: 10,
      get role(): FrameRole {
        throw new Error('it was parsed');
      },
    };
    for (let round = 0; round < 3; round += 1) {
      expect(queue.push(unread)).toBe('taken');
      expect(queue.take()).toEqual({ frame: unread, dropped: null });
    }
  });

  it('drops a notification that is larger than the bound by itself, but takes such a response [M6.1]', () => {
    const queue = new FrameQueue<NumberedFrame>(BOUNDS);
    queue.push({ at: 0, bytes: 101, role: { kind: 'replaceable', subject: 'a' } });
    expect(queue.size).toBe(0);
    queue.push({ at: 1, bytes: 5_000, role: { kind: 'response' } });
    expect(rest(queue)).toEqual([[1, 1]]);
  });
});

describe('a frame of an SSE response', () => {
  const frameOf = (message: unknown) =>
    new SseFrame(new TextEncoder().encode(`event: message\ndata: ${JSON.stringify(message)}\n\n`));
  const raw = (text: string) => new SseFrame(new TextEncoder().encode(text));
  const progress = (progressToken: unknown, message = 'm') => ({
    jsonrpc: '2.0',
    method: 'notifications/progress',
    params: { progressToken, progress: 1, message },
  });

  it.each([
    ['a result', { id: 1, result: {} }, { kind: 'response' }],
    ['an error', { id: 1, error: { code: 1, message: 'm' } }, { kind: 'response' }],
    ['a request to the client', { id: 1, method: 'elicitation/create', params: {} }, { kind: 'needed' }],
    ['an acknowledgement', { method: 'notifications/subscriptions/acknowledged' }, { kind: 'needed' }],
    ['a log line', { method: 'notifications/message', params: {} }, { kind: 'replaceable', subject: null }],
  ])('holds %s', (_what, message, expected) => {
    expect(frameOf({ jsonrpc: '2.0', ...message }).role).toEqual(expected);
  });

  it('tells progress of one token from that of another, string and number too [M6.1]', () => {
    const subjects = [0, '0', 1, ''].map((token) => JSON.stringify(frameOf(progress(token)).role));
    expect(new Set(subjects).size).toBe(4);
    expect(frameOf(progress(0)).role).toEqual(frameOf(progress(0, 'later')).role);
  });

  it('whose text holds separators that JSON leaves raw is read whole, and marked [M6.1]', () => {
    const said = 'one\u2028two\u2029data: three';
    expect(frameOf(progress(0, said)).role).toMatchObject({
      kind: 'replaceable',
      subject: expect.any(String),
    });
    const text = new TextDecoder().decode(frameOf({ id: 1, result: { said } }).marked(7));
    expect(text).toBe(
      `event: message\ndata: ${JSON.stringify({ id: 1, result: { said, _meta: { 'holdfast/refetch': { dropped: 7 } } } })}\n\n`,
    );
  });

  it.each([': keepalive\n\n', 'data: {"a":1}\n\ndata: {"b":2}\n\n', 'data: {"half', 'id: 1\ndata:\n\n'])(
    'that is no message is taken as it is: %j',
    (text) => {
      const frame = raw(text);
      expect(frame.role).toEqual({ kind: text.startsWith(':') ? 'comment' : 'needed' });
      expect(new TextDecoder().decode(frame.marked(3))).toBe(text);
    },
  );

  it('carries the mark beside what it says, in `_meta`, or in the data of an error [M6.1]', () => {
    const marked = (message: object): unknown => {
      const text = new TextDecoder().decode(frameOf(message).marked(7));
      expect(text).toMatch(/^event: message\ndata: .*\n\n$/);
      return JSON.parse(text.slice(text.indexOf('{')));
    };
    const mark = { 'holdfast/refetch': { dropped: 7 } };
    expect(marked({ id: 1, result: { content: [], _meta: { own: '$&' } } })).toEqual({
      id: 1,
      result: { content: [], _meta: { own: '$&', ...mark } },
    });
    expect(marked(progress(0))).toEqual({
      ...progress(0),
      params: { progressToken: 0, progress: 1, message: 'm', _meta: mark },
    });
    expect(marked({ id: 1, error: { code: -1, message: 'm', data: { code: 'c' } } })).toMatchObject({
      error: { data: { code: 'c', _meta: mark } },
    });
    expect(marked({ id: 1, error: { code: -1, message: 'm' } })).toMatchObject({
      error: { data: { _meta: mark } },
    });
  });
});
