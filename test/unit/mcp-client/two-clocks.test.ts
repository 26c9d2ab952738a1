import fc from 'fast-check';
import { expect, it } from 'vitest';
import { startClocks } from '../../../src/mcp-client/two-clocks.ts';
import { HandDrivenClock } from '../../support/hand-driven-clock.ts';
import { holds } from '../../support/property.ts';

it('progress at 1,999 ms does not save a maximum of 2,000 ms [M4.1]', () => {
  const clock = new HandDrivenClock();
  const clocks = startClocks(clock, { idleMs: 1_000, maximumAt: 2_000 });
  clock.pass(999);
  clocks.progressed(1);
  clock.pass(990);
  clocks.progressed(2);
  clock.pass(10);
  clocks.progressed(3);
  expect(clocks.end).toBeNull();
  clock.pass(1);
  expect([clocks.end, clocks.signal.reason]).toEqual(['maximum', 'maximum']);
  clocks.progressed(4);
  clock.pass(5_000);
  expect(clocks.end).toBe('maximum');
  expect(clock.pending).toBe(0);
});

it('ends at the first of idle and maximum, idle being reset by a rising value alone [M4.1]', () => {
  const events = fc.array(fc.record({ passMs: fc.integer({ min: 1, max: 400 }), value: fc.nat(6) }), {
    maxLength: 30,
  });
  const cases = fc.record({
    idleMs: fc.integer({ min: 1, max: 900 }),
    maximumMs: fc.integer({ min: 1, max: 3_000 }),
    events,
  });
  holds('mcp-client two clocks', cases, ({ idleMs, maximumMs, events: steps }) => {
    const clock = new HandDrivenClock();
    const clocks = startClocks(clock, { idleMs, maximumAt: maximumMs });
    let highest = -1;
    let idleAt = idleMs;
    const expected = (): string | null => {
      const endsAt = Math.min(idleAt, maximumMs);
      if (clock.now() < endsAt) return null;
      return idleAt < maximumMs ? 'idle' : 'maximum';
    };
    for (const { passMs, value } of steps) {
      clock.pass(passMs);
      // Where both fall on one moment, either is true.
      if (idleAt !== maximumMs) expect(clocks.end).toBe(expected());
      if (clocks.end === null && value > highest) {
        highest = value;
        idleAt = clock.now() + idleMs;
      }
      clocks.progressed(value);
    }
    clocks.stop();
    expect(clock.pending).toBe(0);
  });
});

it('a caller who leaves, or has left, ends it as abandoned; one who leaves after the answer ends nothing [M5.3]', () => {
  const clock = new HandDrivenClock();
  const caller = new AbortController();
  const left = startClocks(clock, { idleMs: 10, maximumAt: 20 }, caller.signal);
  const answered = startClocks(clock, { idleMs: 10, maximumAt: 20 }, caller.signal);
  answered.stop();
  caller.abort();
  expect([left.end, answered.end]).toEqual(['abandoned', null]);
  expect(answered.signal.aborted).toBe(false);
  expect(startClocks(clock, { idleMs: 10, maximumAt: 20 }, caller.signal).end).toBe('abandoned');
  expect(clock.pending).toBe(0);
});
