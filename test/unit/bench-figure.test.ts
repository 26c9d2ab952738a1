import { describe, expect, test } from 'vitest';
import { figure, lineOf, tableOf } from '../../bench/figure.ts';
import type { Bar } from '../../bench/figure.ts';

describe('a figure of the benchmark', () => {
  test.each<[number | null, Bar, string | null, boolean]>([
    [0.85, { atMost: 0.85 }, '<= 0.85', true],
    [0.8501, { atMost: 0.85 }, '<= 0.85', false],
    [20, { atLeast: 20 }, '>= 20', true],
    [19.99, { atLeast: 20 }, '>= 20', false],
    [0, { exactly: 0 }, '= 0', true],
    [1, { exactly: 0 }, '= 0', false],
    [7, null, null, true],
    [null, { exactly: 0 }, '= 0', true],
  ])('%s against %j is held to it before it is rounded: %s, %s', (value, bar, text, ok) => {
    const line = lineOf(figure('a', value, 'ms', bar));
    expect(line).toMatchObject({ name: 'a', unit: 'ms', bar: text, ok });
    expect(Object.keys(line)).toEqual(['name', 'value', 'unit', 'bar', 'ok']);
  });

  test('is shown with three digits, whole from a hundred on', () => {
    const shown = [1.23456, 0.00123456, 1_234.5, -0.5].map((value) => lineOf(figure('a', value, 'ms')).value);
    expect(shown).toEqual([1.23, 0.00123, 1_235, -0.5]);
  });

  test('stands in a table whose missed bars are marked', () => {
    const missed = lineOf(figure('slow', 12, 'ms', { atMost: 10 }));
    const untold = lineOf(figure('unmeasured', null, 'no such system'));
    expect(tableOf([missed, untold]).split('\n')).toEqual([
      '   figure      value  unit            bar',
      '!  slow           12  ms              <= 10',
      '   unmeasured      –  no such system',
    ]);
  });
});
