/** S2: where every transition is durable, of a task's state and of an operation's row; none is nowhere. */
import { globSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PROCEDURE_EVENTS, TASK_EVENTS, unpersisted } from '../../src/ledger/durability.ts';
import type { Durable } from '../../src/ledger/durability.ts';
import { TRANSITIONS } from '../../src/ledger/transitions.ts';

const EVENTS = [...TASK_EVENTS, ...PROCEDURE_EVENTS];

test('[S2][S3.1] no transition of a task or of a row is unpersisted', () => {
  expect(unpersisted(EVENTS)).toEqual([]);
  expect(TRANSITIONS.filter(({ together }) => !together.includes('audit'))).toEqual([]);
  const lost: Durable = { event: 'lost', history: '', isNoted: false, methods: [] };
  expect(unpersisted([...EVENTS, lost])).toEqual([lost]);
});

test('[S2][S10.3] what outlives the engine’s retention is in the ledger: the rest says only that something begins or waits', () => {
  const inHistoryAlone = EVENTS.filter(({ isNoted, methods }) => !isNoted && methods.length === 0);
  expect(inHistoryAlone.map(({ event }) => event)).toEqual([
    'plan_scheduled',
    'plan_refused',
    'lease_requested',
    'lease_ask_failed',
    'lease_released',
    'close_scheduled',
    'resolve_scheduled',
    'backoff_scheduled',
    'preview_scheduled',
    'preview_overtaken',
    'held_decision_taken',
    'procedure_refused',
    'sleep_started',
    'sleep_ended',
    'end_scheduled',
  ]);
});

test('[S2][S3.3] every event of every recorded journal has its line', () => {
  const folder = new URL('../replay/journals/', import.meta.url);
  const journals = globSync('v*/*.json', { cwd: folder.pathname }).map(
    (path) =>
      JSON.parse(readFileSync(new URL(path, folder), 'utf8')) as { events: readonly { type: string }[] },
  );
  const types = new Set(journals.flatMap(({ events }) => events.map(({ type }) => type)));
  expect(types.size).toBeGreaterThan(20);
  const known = new Set(EVENTS.map(({ event }) => event));
  expect([...types].filter((type) => !known.has(type))).toEqual([]);
});
