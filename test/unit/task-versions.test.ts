/** S3.3: several versions of one thing live together, each brought up step by step on reading. */
import { describe, expect, test } from 'vitest';
import { upcast, upcastEntry, upcastProcedure } from '../../src/task/upcast.ts';
import type { Lineage, Stored } from '../../src/task/upcast.ts';

/** Version 2 named who asked, version 3 says so in an object. */
const LINEAGE: Lineage = {
  what: 'task event',
  newest: 3,
  stepsUp: {
    1: (event) => ({ ...event, v: 2, by: 'unknown' }),
    2: ({ by, ...event }: Stored & { by?: unknown }) => ({ ...event, v: 3, asked: { by } }),
  },
};

const read = (stored: Stored): Stored => upcast(stored, LINEAGE);

describe('a journal with events of several versions', () => {
  test('is read as if the newest had written it all [S3.3]', () => {
    const journal = [
      { v: 1, seq: 1 },
      { v: 3, seq: 2, asked: { by: 'ann' } },
      { v: 2, seq: 3, by: 'bob' },
    ];
    const stored = structuredClone(journal);
    expect(journal.map(read)).toEqual([
      { v: 3, seq: 1, asked: { by: 'unknown' } },
      { v: 3, seq: 2, asked: { by: 'ann' } },
      { v: 3, seq: 3, asked: { by: 'bob' } },
    ]);
    expect(journal).toEqual(stored);
    expect(journal.map(read).map(read)).toEqual(journal.map(read));
  });

  test('is refused where one of them is of a version nobody knows, older or newer [S3.3]', () => {
    expect(() => read({ v: 0 })).toThrow(/no way up for a task event of version 0/);
    expect(() => read({ v: 4 })).toThrow(/event of version 4 is newer/);
    const withGap = { ...LINEAGE, newest: 4 };
    expect(() => upcast({ v: 1 }, withGap)).toThrow(/no way up for a task event of version 3/);
  });
});

test('a procedure’s carried state and entries are refused when they come from a newer release [S3.3]', () => {
  const carried = [upcastProcedure, upcastEntry] as const;
  for (const read of carried) expect(read({ v: 1 })).toEqual({ v: 1 });
  expect(() => upcastProcedure({ v: 2 })).toThrow(/procedure state of version 2 is newer/);
  expect(() => upcastEntry({ v: 2 })).toThrow(/procedure entry of version 2 is newer/);
});
