// S1.5, S10.1: several processes on one store, one of them killed in between.
import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChildOptions } from './ledger-child.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place } from './ledger-fixture.ts';

const PATIENCE_MS = 120_000;
const SCRIPT = fileURLToPath(new URL('ledger-child.ts', import.meta.url));
const THREADS = 4;
const COUNT = 500;

describe.each(fixture.STORES)('processes on one %s ledger', (kind) => {
  let place: Place;
  const children: ChildProcess[] = [];
  beforeEach(async () => {
    place = await fixture.openPlace(kind);
  });
  afterEach(async () => {
    for (const child of children.splice(0)) child.kill('SIGKILL');
    await place.close();
  });

  function start(options: Pick<ChildOptions, 'mode' | 'who'> & Partial<ChildOptions>): ChildProcess {
    const work = { operationId: 'op_none', taskId: 'task_none', ordinal: 1 };
    const all: ChildOptions = { work, threads: THREADS, count: COUNT, keys: [], url: place.url, ...options };
    const child = fork(SCRIPT, [], {
      execArgv: ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'],
      env: { ...process.env, HOLDFAST_TEST_OPTIONS: JSON.stringify(all) },
    });
    children.push(child);
    return child;
  }

  /** Keeps what `child` says was answered; `kill` ends it once it has said so much. */
  function listen(child: ChildProcess, answered: Set<string>, kill = Infinity): Promise<unknown> {
    let heard = 0;
    child.on('message', (entry: string) => {
      answered.add(entry);
      heard += 1;
      if (heard === kill) child.kill('SIGKILL');
    });
    return once(child, 'exit');
  }

  test(
    '[S10.1] the chain stays linear and keeps every answered entry under 2 × 4 × 500 appends and a kill in between',
    async () => {
      const work = await fixture.reserved(place.ledger);
      const answered = new Set<string>();
      const steady = listen(start({ mode: 'append', who: 'steady', work }), answered);
      const killed = listen(start({ mode: 'append', who: 'killed', work }), answered, 700);
      await killed;
      const lost = THREADS * COUNT - [...answered].filter((entry) => entry.startsWith('killed')).length;
      await listen(start({ mode: 'append', who: 'after', work, count: Math.ceil(lost / THREADS) }), answered);
      await steady;
      const entries = await place.ledger.audit(work);
      const noted = entries.slice(1).map(({ data }) => data['entry'] as string);
      expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_, index) => index + 1));
      expect(new Set(noted).size).toBe(noted.length);
      expect([...answered].filter((entry) => !noted.includes(entry))).toEqual([]);
      expect(noted.length).toBeGreaterThanOrEqual(2 * THREADS * COUNT);
      // At most what each thread of the killed process had under way was written without being answered.
      expect(noted.filter((entry) => !answered.has(entry)).length).toBeLessThanOrEqual(4 * THREADS);
      expect(await place.ledger.verifyAudit()).toEqual({ ok: true, tasks: 1, entries: noted.length + 1 });
    },
    PATIENCE_MS,
  );

  test(
    '[S1.5] of all calls for one key, in four processes at one moment, exactly one is fresh',
    async () => {
      const keys = Array.from({ length: 25 }, () => fixture.freshKey());
      const said: { key: string; kind: string }[] = [];
      const racers = Array.from({ length: 4 }, (_, index) =>
        start({ mode: 'race', who: `racer-${index}`, keys }),
      );
      await Promise.all(racers.map((racer) => once(racer, 'message')));
      for (const racer of racers) {
        racer.on('message', (answer: { key: string; kind: string }) => said.push(answer));
        racer.send('go');
      }
      await Promise.all(racers.map((racer) => once(racer, 'exit')));
      expect(said).toHaveLength(4 * 3 * keys.length);
      for (const key of keys) {
        const kinds = said.filter((answer) => answer.key === key).map((answer) => answer.kind);
        expect(kinds.filter((answer) => answer === 'fresh')).toHaveLength(1);
        expect(kinds.filter((answer) => answer === 'open')).toHaveLength(11);
      }
      expect(await place.ledger.verifyAudit()).toEqual({ ok: true, tasks: 25, entries: 25 });
    },
    PATIENCE_MS,
  );
});
