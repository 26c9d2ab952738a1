import fc from 'fast-check';
import { expect, test } from 'vitest';
import { upstreamToolName } from '../../../src/upstream/tool-name.ts';

test('[M8.2] plain names are joined, and stay as they are for ever', () => {
  expect(upstreamToolName('files', 'write_file')).toBe('files__write_file');
  expect(upstreamToolName('a_b', 'c')).toBe('a_b__c');
  expect(upstreamToolName('a', 'b_c')).toBe('a__b_c');
});

test('[M8.2] whatever is changed or cut carries a hash of the full identity; these are persisted', () => {
  expect(upstreamToolName('files', 'write.file')).toBe('files__write_file__swibn2an5sxg');
  expect(upstreamToolName('files', 'x'.repeat(80))).toHaveLength(64);
  expect(upstreamToolName('a', '_b')).not.toBe(upstreamToolName('a_', 'b'));
  expect(upstreamToolName('', '日本')).toMatch(/^x__x__[a-z2-7]{12}$/);
});

test('[M8.2] names are callable everywhere, and no two tools share one', () => {
  const part = fc.oneof(
    fc.string({ maxLength: 90 }),
    fc.string({ unit: fc.constantFrom('a', '_', '-', '.'), maxLength: 6 }),
  );
  fc.assert(
    fc.property(part, part, part, part, (one, tool, other, another) => {
      const names = [upstreamToolName(one, tool), upstreamToolName(other, another)] as const;
      for (const name of names) expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
      if (one !== other || tool !== another) expect(names[0]).not.toBe(names[1]);
    }),
    { numRuns: 2_000 },
  );
});
