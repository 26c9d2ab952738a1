import { strict as assert } from 'node:assert';
import { test } from 'vitest';
import fc from 'fast-check';
import { compareFences, fenceOf } from '../../src/task/claim.ts';
import { holds } from '../support/property.ts';

const part = fc.integer({ min: 0, max: 12 });
const claims = fc.record({ ordinal: part, attempt: part, generation: part });

test('fences are ordered by ordinal, attempt and generation, as numbers [S2.3][S8.1]', () => {
  const ascending = ['1.1.1', '1.1.2', '1.1.10', '1.2.1', '1.10.1', '2.1.1', '10.1.1'];
  const shuffled = ascending.toReversed().sort(compareFences);
  assert.deepEqual(shuffled, ascending);
  assert.equal(fenceOf({ ordinal: 1, attempt: 10, generation: 3 }), '1.10.3');
  assert.equal(compareFences('1.2.3', '1.2.3'), 0);
});

test('of two claims the later one has the higher fence, whichever is asked first [S8.1]', () => {
  holds('fence-order', fc.tuple(claims, claims), ([one, other]) => {
    const [left, right] = [fenceOf(one), fenceOf(other)];
    assert(compareFences(left, right) * compareFences(right, left) <= 0);
    if (one.ordinal > other.ordinal) assert(compareFences(left, right) > 0);
  });
});
