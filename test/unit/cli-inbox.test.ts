/** What a person reads of the inbox, before anything is opened. */
import { expect, test } from 'vitest';
import { waitingJson, writeWaiting } from '../../src/cli/inbox-lines.ts';
import type { Waiting } from '../../src/cli/inbox-lines.ts';
import type { TaskAnswer } from '../../src/client/task-client.ts';
import { openApproval } from '../support/driven-gateway.ts';

const TASK = `task_${'a'.repeat(52)}`;
const NOW = 1_800_000_000_000 + 3_600_000;

const waiting = (task: Partial<TaskAnswer>, status = 'awaiting_approval'): Waiting => ({
  entry: { taskId: TASK, action: 'book_trip', status, waitingSince: NOW - 60_000 },
  task: { taskId: TASK, action: 'book_trip', status, stale: false, ...task } as TaskAnswer,
});

function linesOf(all: Waiting[], more = 0, width = 80): string[] {
  const lines: string[] = [];
  const write = (line: string) => void lines.push(line);
  writeWaiting({ width, write, paint: (_style, text) => text }, all, more, NOW);
  return lines;
}

const TWO = waiting({
  approval: openApproval({
    callId: 'hotel#1',
    action: 'book_hotel',
    roles: ['chief'],
    view: { requester: 'ann', arguments: { name: 'Ritz' } },
  }),
  otherApprovals: [
    openApproval({
      callId: 'date#1',
      action: 'holdfast_approval',
      view: { requester: 'ann', arguments: { view: { asks: 'date' }, policy: {} } },
    }),
  ],
});

test('[S4.7] each thing that is asked has its row: who asks, what is called with which arguments, of whom', () => {
  const [titles, hotel, hotelIds, date, dateIds] = linesOf([TWO]);
  expect(titles?.split(/\s+/)).toEqual(['WAITING', 'BY', 'CALL', 'FOR', 'LEFT']);
  expect(hotel).toMatch(/^1h +ann +book_hotel \{"name":"Ritz"\} +chief +23h$/);
  expect(hotelIds).toBe(`  ${TASK}  hotel#1`);
  expect(date).toMatch(/^1h +ann +book_trip \{"asks":"date"\} +a decision +23h$/);
  expect(dateIds).toBe(`  ${TASK}  date#1`);
  expect(waitingJson(TWO)).toMatchObject({
    approval: { callId: 'hotel#1', action: 'book_hotel' },
    otherApprovals: [{ callId: 'date#1' }],
  });
});

test('[S4.7] the table keeps to 80 columns, whatever the arguments, and says how many more wait', () => {
  const view = { requester: 'somebody@example.org', arguments: { note: 'x'.repeat(500) } };
  const long = waiting({ approval: openApproval({ view, roles: ['chief', 'cfo', 'auditor'] }) });
  const lines = linesOf([long], 7);
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThanOrEqual(80);
  expect(lines.at(-1)).toMatch(/^7 more wait/);
});

test('[M2.2] [S3.5] where no worker answers, what the engine knows is shown', () => {
  const stale = waiting({ status: 'proposed', stale: true });
  expect(linesOf([stale])[1]).toMatch(/^1m +book_trip +a decision$/);
  expect(waitingJson(stale)).toMatchObject({ status: 'awaiting_approval', stale: true, approval: null });
  expect(linesOf([waiting({}, 'needs_attention')])[1]).toMatch(/a resolution$/);
});
