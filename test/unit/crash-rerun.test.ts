/** A cell of the crash matrix that was disturbed is run again, but never one whose count breaks a promise. */
import { expect, test } from 'vitest';
import { breaksPromise } from '../fault/broken-promise.ts';

test('[S2.11] no disturbance excuses a second effect, a lost one, or one that is reported as none', () => {
  const broken = [
    { effects: 2, status: 'completed', effect: 'applied' },
    { effects: 2, status: 'needs_attention', effect: null },
    { effects: 0, status: 'completed', effect: 'applied' },
    { effects: 1, status: 'failed', effect: 'none' },
    { effects: 1, status: 'cancelled', effect: 'none' },
  ];
  const kept = [
    { effects: 1, status: 'completed', effect: 'applied' },
    { effects: 0, status: 'completed', effect: 'none' },
    { effects: 0, status: 'failed', effect: 'none' },
    { effects: 0, status: 'needs_attention', effect: null },
    { effects: 1, status: 'needs_attention', effect: null },
  ];
  expect(broken.filter((fate) => !breaksPromise(fate))).toEqual([]);
  expect(kept.filter(breaksPromise)).toEqual([]);
});
