import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { GATEWAY_LIMITS } from '../../../src/contract/gateway-limits.ts';
import { BACKOFF, backoffDelayMs, createBackoff, seededRandom } from '../../../src/mcp-client/backoff.ts';
import { holds } from '../../support/property.ts';

it('each delay lies between nothing and the doubled width, capped, above whatever the server asked for [M6.3]', () => {
  const cases = fc.record({
    seed: fc.integer(),
    failures: fc.array(fc.option(fc.integer({ min: 0, max: 60_000 })), { minLength: 1, maxLength: 40 }),
  });
  holds('mcp-client backoff', cases, ({ seed, failures }) => {
    const [one, same] = [createBackoff(seededRandom(seed)), createBackoff(seededRandom(seed))];
    failures.forEach((retryAfterMs, attempt) => {
      const delayMs = one.next(retryAfterMs ?? undefined);
      expect(same.next(retryAfterMs ?? undefined)).toBe(delayMs);
      const widthMs = Math.min(8_000, 250 * 2 ** attempt);
      expect(delayMs).toBeGreaterThanOrEqual(retryAfterMs ?? 0);
      expect(delayMs - (retryAfterMs ?? 0)).toBeLessThan(widthMs);
    });
    one.reset();
    expect(one.next()).toBeLessThan(BACKOFF.initialMs);
  });
});

it('is spread over the whole width: full jitter, not a little of it [M6.3]', () => {
  const random = seededRandom(7);
  const tenths = new Array<number>(10).fill(0);
  for (let n = 0; n < 10_000; n += 1) {
    const tenth = Math.floor(backoffDelayMs(10, random()) / 800);
    tenths[tenth] = (tenths[tenth] ?? 0) + 1;
  }
  for (const count of tenths) expect(Math.abs(count - 1_000)).toBeLessThan(150);
});

interface Herd {
  seed: number;
  downMs: number;
  /** They share the clients evenly. The gateway counts each apart, and nothing else (M7.2). */
  principals: number;
  random?: () => number;
}

/**
 * 10,000 clients whose gateway is gone for a while, on a simulated clock. Each, once it is let in, sends what the reconnect
 * plan asks for: the stream and a read. Beyond its principal's calls of a second, refused ones counted too, the gateway
 * answers 429 with `Retry-After: 1`.
 */
function reconnects({ seed, downMs, principals, random = seededRandom(seed) }: Herd) {
  const WINDOW_MS = 100;
  const clients = Array.from({ length: 10_000 }, (_, at) => ({
    backoff: createBackoff(random),
    left: 2,
    principal: at % principals,
  }));
  /** The calls of each principal in the second that runs. */
  const calls = new Array<number>(principals).fill(0);
  /** Who arrives in each window. */
  const agenda: (typeof clients)[] = [];
  const arrive = (client: (typeof clients)[number], atMs: number) =>
    (agenda[Math.floor(atMs / WINDOW_MS)] ??= []).push(client);
  for (const client of clients) arrive(client, client.backoff.next());
  const isOneTooMany = ({ principal }: (typeof clients)[number]) =>
    (calls[principal] = (calls[principal] ?? 0) + 1) > GATEWAY_LIMITS.callsPerSecondMax.value;
  let served = 0;
  let peak = 0;
  let window = 0;
  for (; served < clients.length && window < agenda.length; window += 1) {
    const startMs = window * WINDOW_MS;
    const arrivals = agenda[window] ?? [];
    const isUp = startMs >= downMs;
    if (startMs % 1_000 === 0) calls.fill(0);
    if (isUp) peak = Math.max(peak, arrivals.length);
    for (const client of arrivals) {
      // Within one window the exact moment does not matter: a later one begins at the next.
      const againAt = (delayMs: number) => startMs + Math.max(WINDOW_MS, delayMs);
      if (!isUp) arrive(client, againAt(client.backoff.next()));
      else if (isOneTooMany(client)) arrive(client, againAt(client.backoff.next(1_000)));
      else if ((client.left -= 1) === 0) served += 1;
      else arrive(client, againAt(0));
    }
  }
  return { served, peak, backMs: window * WINDOW_MS - downMs };
}

describe('10,000 clients that lost one gateway at one moment', () => {
  const cases = fc.record({ seed: fc.integer(), downMs: fc.integer({ min: 2_000, max: 60_000 }) });

  it('come back spread out: never a sixth of them in one window of 100 ms, however long it was gone, and all are served [M6.3] [mode 13]', () => {
    const check = (given: { seed: number; downMs: number }) => {
      const { served, peak, backMs } = reconnects({ ...given, principals: 100 });
      expect(served).toBe(10_000);
      expect(peak).toBeLessThan(10_000 / 6);
      expect(backMs).toBeLessThan(15_000);
    };
    holds('mcp-client herd', cases, check, 3);
  });

  it('would all stand at the door at once without the jitter', () => {
    const { peak } = reconnects({ seed: 0, downMs: 5_000, principals: 100, random: () => 0.999 });
    expect(peak).toBe(10_000);
  });

  it('as one principal, of whom it takes 1,000 calls a second, are all in within a minute: the refused come later, not together [M6.3] [M7.2]', () => {
    const check = (given: { seed: number; downMs: number }) => {
      const { served, peak, backMs } = reconnects({ ...given, principals: 1 });
      expect(served).toBe(10_000);
      expect(peak).toBeLessThan(10_000 / 6);
      expect(backMs).toBeGreaterThanOrEqual(19_000); // two calls each
      expect(backMs).toBeLessThan(60_000);
    };
    holds('mcp-client herd of one principal', cases, check, 3);
  });
});
