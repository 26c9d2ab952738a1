import { afterEach, beforeEach, expect, test } from 'vitest';
import { attend, isUnattendedSince } from '../../src/client/attendance.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';

let ledger: Ledger;
let now = 1_000;
beforeEach(async () => {
  now = 1_000;
  ledger = await openLedger({ url: 'sqlite::memory:', allowEphemeral: true, nowMs: () => now });
  await ledger.migrate();
});
afterEach(() => ledger.close());

test('a task is unattended since its last mark, and attended by any later one, by the ledger’s clock [M5.3]', async () => {
  await attend(ledger, 'task_1', 'waiting');
  now = 2_000;
  const left = await attend(ledger, 'task_1', 'waiting');
  expect(left).toBe(2_000);
  now = 3_000;
  expect(await isUnattendedSince(ledger, 'task_1', left)).toBe(true);
  await attend(ledger, 'task_1', 'waiting');
  expect(await isUnattendedSince(ledger, 'task_1', left)).toBe(false);
  expect(await isUnattendedSince(ledger, 'task_2', left)).toBe(true);
});

test('whose handle was given away is attended for good, whoever marks it afterwards [M5.3]', async () => {
  await attend(ledger, 'task_1', 'handed');
  now = 2_000;
  const left = await attend(ledger, 'task_1', 'waiting');
  now = 1_000_000;
  expect(await isUnattendedSince(ledger, 'task_1', left)).toBe(false);
});
