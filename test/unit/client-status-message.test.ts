import { describe, expect, test } from 'vitest';
import { statusMessage } from '../../src/client/status-message.ts';
import type { StatusFacts } from '../../src/client/status-message.ts';
import type { TaskStatus } from '../../src/task/outcome.ts';

const facts = (changes: Partial<StatusFacts>): StatusFacts => ({
  taskId: 'task_x',
  status: 'running',
  effect: null,
  error: null,
  replayed: false,
  attached: false,
  autoRetry: true,
  cancelRequested: false,
  stale: false,
  attentionAbout: null,
  nextEligibleAt: null,
  isResultDropped: false,
  ...changes,
});

describe('the words of a status', () => {
  const unknown: Partial<StatusFacts>[] = [
    { status: 'reconciling' },
    { status: 'needs_attention', attentionAbout: 'effect' },
    { status: 'failed', effect: 'unknown', error: { code: 'operation_abandoned', message: 'Given up.' } },
    { status: 'failed', effect: null },
  ];
  test.each(unknown)('of an unknown outcome keep a model from calling again: %j [M1.5]', (changes) => {
    const text = statusMessage(facts(changes));
    expect(text).toMatch(/not done, not failed/i);
    expect(text).toContain('Do not call again; ask for task task_x');
  });

  const known: TaskStatus[] = ['proposed', 'running', 'verifying', 'backing_off', 'completed', 'cancelled'];
  test.each(known)('of a known outcome do not cry wolf: %s', (status) => {
    expect(statusMessage(facts({ status, effect: 'none' }))).not.toMatch(/not failed/i);
  });

  test('say of every end what became of the effect', () => {
    const error = { code: 'precondition_failed', message: 'Out of stock.' };
    expect(statusMessage(facts({ status: 'failed', effect: 'none', error }))).toBe(
      'Out of stock. Nothing was applied.',
    );
    expect(statusMessage(facts({ status: 'failed', effect: 'rolled_back', error }))).toMatch(/was undone/);
    expect(statusMessage(facts({ status: 'failed', effect: 'applied', error }))).toMatch(/effect stands/);
    expect(statusMessage(facts({ status: 'cancelled', effect: 'rolled_back' }))).toMatch(/undone/);
  });

  test('name when the next attempt begins', () => {
    const text = statusMessage(
      facts({ status: 'backing_off', nextEligibleAt: Date.UTC(2026, 0, 2, 3, 4, 5) }),
    );
    expect(text).toContain('at 2026-01-02T03:04:05.000Z');
  });

  test('add what the caller must know besides', () => {
    expect(statusMessage(facts({ cancelRequested: true }))).toMatch(/Cancel requested/);
    expect(statusMessage(facts({ autoRetry: false }))).toMatch(/without an idempotency key/);
    expect(statusMessage(facts({ attached: true }))).toMatch(/equal call/);
    expect(statusMessage(facts({ stale: true }))).toMatch(/last known state/);
    expect(statusMessage(facts({ status: 'completed', replayed: true }))).toMatch(/nothing was sent now/);
    expect(statusMessage(facts({ status: 'completed', isResultDropped: true }))).toMatch(/too large/);
    expect(statusMessage(facts({ status: 'needs_attention', attentionAbout: 'rollback' }))).toMatch(
      /could not be undone/,
    );
  });
});
