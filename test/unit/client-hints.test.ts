import { expect, test } from 'vitest';
import { createHints } from '../../src/client/hints.ts';
import type { Hint } from '../../src/client/hints.ts';

test('a hint reaches everyone who waits for that task, and nobody else', () => {
  const hints = createHints();
  const heard: [string, Hint][] = [];
  hints.subscribe('task_a', (hint) => heard.push(['first', hint]));
  hints.subscribe('task_a', (hint) => heard.push(['second', hint]));
  hints.subscribe('task_b', (hint) => heard.push(['other', hint]));
  hints.publish('task_a', 3, 'running');
  expect(heard).toEqual([
    ['first', { seq: 3, status: 'running' }],
    ['second', { seq: 3, status: 'running' }],
  ]);
});

test('who has unsubscribed hears nothing, also when it happens inside a hint', () => {
  const hints = createHints();
  const heard: number[] = [];
  const stop = hints.subscribe('task_a', ({ seq }) => {
    heard.push(seq);
    stop();
  });
  hints.publish('task_a', 1);
  hints.publish('task_a', 2);
  stop();
  hints.publish('task_a', 3);
  expect(heard).toEqual([1]);
});
