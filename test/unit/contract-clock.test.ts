import { expect, it } from 'vitest';
import { pause, systemClock } from '../../src/contract/clock.ts';
import { startClocks } from '../../src/mcp-client/two-clocks.ts';

it('a clock without a maximum, or with one beyond what a timer keeps, does not run out at once [M4.1]', async () => {
  const clocks = [Number.POSITIVE_INFINITY, 2 ** 40].map((maximumAt) =>
    startClocks(systemClock, { idleMs: 2 ** 33, maximumAt }),
  );
  await pause(systemClock, 20, new AbortController().signal);
  expect(clocks.map(({ end }) => end)).toEqual([null, null]);
  for (const each of clocks) each.stop();
});

it('a pause ends with its signal', async () => {
  const gone = new AbortController();
  const paused = pause(systemClock, Number.POSITIVE_INFINITY, gone.signal);
  gone.abort();
  await paused;
  await pause(systemClock, Number.POSITIVE_INFINITY, gone.signal);
});
