import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { closingLine } from '../closing-line.ts';

const root = join(import.meta.dirname, '../..');

describe('the closing line', () => {
  it('leaves skipped out when nothing was skipped', () => {
    expect(closingLine({ passed: 3, failed: 0, skipped: 0 })).toBe('3 passed, 0 failed');
    expect(closingLine({ passed: 3, failed: 1, skipped: 2 })).toBe('3 passed, 1 failed, 2 skipped');
  });
});

describe('the closing-line reporter, in a run of its own', () => {
  const folder = mkdtempSync(join(root, 'node_modules/.closing-line-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const lastLine = (body: string, ...args: string[]) => {
    writeFileSync(
      join(folder, 'sample.test.js'),
      `import { test, describe, beforeAll } from 'vitest';\n${body}`,
    );
    const reporter = join(root, 'test/closing-line-reporter.ts');
    writeFileSync(
      join(folder, 'vitest.config.js'),
      `export default { test: { include: ['*.test.js'], reporters: ['default', ${JSON.stringify(reporter)}] } };`,
    );
    const env = { ...process.env };
    delete env['HOLDFAST_TEST_TOTALS'];
    const cli = join(root, 'node_modules/vitest/vitest.mjs');
    const run = spawnSync(process.execPath, [cli, 'run', '--root', folder, ...args], {
      encoding: 'utf8',
      env,
    });
    return {
      status: run.status,
      last: run.stdout.trimEnd().split('\n').at(-1),
      all: run.stdout + run.stderr,
    };
  };

  it('counts what passed, failed and was skipped, and comes last', () => {
    const run = lastLine(
      `test('a', () => {}); test('b', () => { throw new Error('no') }); test.skip('c', () => {});`,
    );
    expect(run).toMatchObject({ status: 1, last: '1 passed, 1 failed, 1 skipped' });
  });

  it('does not count tests that a name pattern leaves out', () => {
    const run = lastLine(
      `describe('a crash', () => test('is survived', () => {})); test('b', () => {});`,
      '-t',
      'crash',
    );
    expect(run).toMatchObject({ status: 0, last: '1 passed, 0 failed' });
  });

  it('counts a file that does not load, a failing hook, an error outside any test and an empty run as failures', () => {
    expect(lastLine(`throw new Error('at import');`)).toMatchObject({
      status: 1,
      last: '0 passed, 1 failed',
    });
    const hook = lastLine(
      `describe('s', () => { beforeAll(() => { throw new Error('hook') }); test('a', () => {}); });`,
    );
    expect(hook.status).toBe(1);
    expect(hook.last).toMatch(/^0 passed, [1-9]\d* failed/);
    const stray = lastLine(`test('a', () => { void Promise.reject(new Error('stray')); });`);
    const nothing = lastLine('', 'no-such-file');
    expect(nothing).toMatchObject({ status: 1, last: '0 passed, 1 failed' });
    expect(stray).toMatchObject({ status: 1, last: '1 passed, 1 failed' });
  });
});
