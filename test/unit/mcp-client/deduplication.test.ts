import fc from 'fast-check';
import { expect, it } from 'vitest';
import { isNews, NOTHING_SEEN, remember, withSubscription } from '../../../src/mcp-client/deduplication.ts';
import type { TaskNews } from '../../../src/mcp-client/deduplication.ts';
import { holds } from '../../support/property.ts';

/** Deliveries of true states, in any order, over live and dead subscriptions and by reads, with reconnects in between. */
const deliveries = fc.array(
  fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({
        state: fc.nat(5),
        task: fc.nat(1),
        over: fc.constantFrom('read', 'live', 'dead'),
      }),
    },
    { weight: 1, arbitrary: fc.constant('reconnect' as const) },
  ),
  { maxLength: 60 },
);
/** A task's six true states; two share their time, and the last is the end, whose time is of another clock. */
const TIMES = [1, 2, 2, 3, 4, 1];

it('tells each state of a task once, never goes back and says nothing after the end, whatever arrives how often and over which connection [M6.3]', () => {
  holds('mcp-client deduplication', deliveries, (events) => {
    let connection = 0;
    let seen = withSubscription(NOTHING_SEEN, 'subscription 0');
    const told: Record<string, TaskNews[]> = { T0: [], T1: [] };
    const ended = new Set<string>();
    for (const event of events) {
      if (event === 'reconnect') {
        seen = withSubscription(seen, `subscription ${(connection += 1)}`);
        continue;
      }
      const { state, task, over } = event;
      const ids = { read: null, live: `subscription ${connection}`, dead: `subscription ${connection - 1}` };
      const news: TaskNews = {
        subscriptionId: ids[over],
        taskId: `T${task}`,
        sequence: TIMES[state] ?? 0,
        fingerprint: `state ${state}`,
        hasEnded: state === 5,
      };
      if (news.hasEnded && over !== 'dead') ended.add(news.taskId);
      if (!isNews(seen, news)) continue;
      expect(over).not.toBe('dead');
      seen = remember(seen, news);
      told[news.taskId]?.push(news);
    }
    for (const [taskId, each] of Object.entries(told)) {
      expect(each.some(({ hasEnded }) => hasEnded)).toBe(ended.has(taskId));
      const ends = each.findIndex(({ hasEnded }) => hasEnded);
      if (ends >= 0) expect(ends).toBe(each.length - 1);
      each.forEach((news, place) => {
        const before = each[place - 1];
        if (!before) return;
        if (!news.hasEnded) expect(news.sequence).toBeGreaterThanOrEqual(before.sequence);
        expect(news.fingerprint).not.toBe(before.fingerprint);
      });
    }
  });
});

it('does not confuse a task with what every object has [S1.4]', () => {
  const news = {
    subscriptionId: null,
    taskId: 'constructor',
    sequence: 1,
    fingerprint: 'a',
    hasEnded: false,
  };
  expect(isNews(NOTHING_SEEN, news)).toBe(true);
});
