import { afterEach, describe, expect, test } from 'vitest';
import { installDrain } from '../../worker/drain.ts';
import type { Drain } from '../../worker/drain.ts';

const silent = { debug() {}, info() {}, warn() {}, error() {} };
let drain: Drain | null = null;
afterEach(() => drain?.uninstall());

describe('a drain', () => {
  test('runs its steps in order and leaves with 0', async () => {
    const done: string[] = [];
    const step = (name: string) => ({ name, run: async () => void done.push(name) });
    drain = installDrain({
      steps: [step('gateway'), step('worker'), step('ledger')],
      boundMs: 1_000,
      log: silent,
    });
    expect(await drain.start('test')).toBe(0);
    expect(done).toEqual(['gateway', 'worker', 'ledger']);
  });

  test('runs the later steps though an earlier one failed, and leaves with 1', async () => {
    const done: string[] = [];
    drain = installDrain({
      steps: [
        { name: 'worker', run: () => Promise.reject(new Error('stuck')) },
        { name: 'ledger', run: async () => void done.push('ledger') },
      ],
      boundMs: 1_000,
      log: silent,
    });
    expect(await drain.start('test')).toBe(1);
    expect(done).toEqual(['ledger']);
  });

  test('leaves within its bound, whatever hangs', async () => {
    drain = installDrain({
      steps: [{ name: 'worker', run: () => new Promise(() => undefined) }],
      boundMs: 50,
      log: silent,
    });
    const began = performance.now();
    expect(await drain.start('test')).toBe(1);
    expect(performance.now() - began).toBeLessThan(1_000);
  });

  test('begins at the first signal and ends at once at the second', async () => {
    const codes: number[] = [];
    let finish: () => void = () => undefined;
    const step = { name: 'worker', run: () => new Promise<void>((resolve) => (finish = resolve)) };
    drain = installDrain({ steps: [step], boundMs: 5_000, log: silent, exit: (code) => codes.push(code) });
    process.emit('SIGTERM', 'SIGTERM');
    process.emit('SIGINT', 'SIGINT');
    expect(codes).toEqual([130]);
    finish();
    await expect.poll(() => codes).toEqual([130, 0]);
  });

  test('runs once, however often it is asked for', async () => {
    let runs = 0;
    drain = installDrain({
      steps: [{ name: 'worker', run: async () => void (runs += 1) }],
      boundMs: 1_000,
      log: silent,
    });
    await Promise.all([drain.start('one'), drain.start('two')]);
    expect(runs).toBe(1);
  });
});
