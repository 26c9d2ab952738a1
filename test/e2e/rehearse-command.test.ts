/** `holdfast rehearse` as scripts and people use it: real processes, exit codes, the files an auditor gets. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RehearsalReport } from '../../src/testing/index.ts';
import { startFaultTarget } from '../support/fault-target.ts';
import type { FaultTarget } from '../support/fault-target.ts';
import { holdfast, holdfastJson } from '../support/holdfast-command.ts';
import type { Place } from '../support/holdfast-command.ts';

const WIDTH = 100;
const root = join(import.meta.dirname, '../..');
const WRONG = ['--config', join(root, 'test/support/wrong.config.ts')];
const TRANSFER = ['--config', join(root, 'examples/transfer/holdfast.config.ts')];
const PROCEDURE = ['--config', join(root, 'test/support/procedure.config.ts')];
const TARGET = ['--config', join(root, 'test/support/target.config.ts')];

let target: FaultTarget;
let place: Place;
beforeAll(async () => {
  target = await startFaultTarget();
  place = { cwd: mkdtempSync(join(tmpdir(), 'holdfast-rehearse-')), env: target.env };
});
afterAll(async () => {
  await target.stop();
  rmSync(place.cwd, { recursive: true, force: true });
});

describe('holdfast rehearse', () => {
  test('[S6.6] [S10.4] kept promises exit 0, and leave Markdown, JSON and an audit that verifies without a database', async () => {
    const { code, value } = await holdfastJson<RehearsalReport>(
      place,
      ...['rehearse', 'transfer_funds', ...TRANSFER, '--only', 'crash', '--out', 'out'],
    );
    expect(code).toBe(0);
    expect(value).toMatchObject({ action: 'transfer_funds', ok: true, broken: [] });
    expect(value.scenarios.map(({ effects }) => effects)).toEqual(value.scenarios.map(() => 1));
    const file = (name: string): string => readFileSync(join(place.cwd, 'out', name), 'utf8');
    expect(JSON.parse(file('rehearsal.json'))).toEqual(value);
    expect(file('rehearsal.md')).toContain('| crash between intent and call | S2.11 | 1 | 0 | completed |');
    const verified = await holdfastJson(place, 'audit', 'verify', '--file', 'out/rehearsal-audit.jsonl');
    expect(verified).toMatchObject({ code: 0, value: { ok: true, tasks: value.scenarios.length } });
  });

  test('[S6.6] [S7.2] a transactional action is interrupted too, once its transaction is over', async () => {
    const { value } = await holdfastJson<RehearsalReport>(
      place,
      ...['rehearse', 'transfer_funds', ...TRANSFER, '--only', 'interrupt'],
    );
    expect(value.broken).toEqual([]);
    const ends = Object.fromEntries(value.scenarios.map(({ scenario, end }) => [scenario, end]));
    expect(ends).toMatchObject({
      'interrupted before a retry': 'completed',
      'interrupted, then cancelled': 'cancelled, nothing applied',
    });
  });

  test('[S6.6] a broken promise exits 1, in a table that fits and says what the target counted', async () => {
    const { code, stdout } = await holdfast(
      place,
      'rehearse',
      'wrongly_conditional',
      ...WRONG,
      '--only',
      'crash',
    );
    expect(code).toBe(1);
    const lines = stdout.split('\n');
    const table = lines.slice(0, lines.indexOf(''));
    expect(Math.max(...table.map(({ length }) => length))).toBeLessThanOrEqual(WIDTH);
    expect(table.filter((line) => line.includes('BROKEN'))).toEqual([
      expect.stringMatching(/^crash between call and verify +2 +- +completed +intact +BROKEN$/),
      expect.stringMatching(/^crash between verify and commit +2 +- /),
      expect.stringMatching(/^two crashes after the call +3 +- /),
    ]);
    expect(stdout).toContain('crash between call and verify: one operation, and the target counts 2 effects');
  });

  test('[S6.6] [S6.3] a procedure is rehearsed by its name, each step counted by its action', async () => {
    const { code, value } = await holdfastJson<RehearsalReport>(
      place,
      ...['rehearse', 'pay_twice', ...PROCEDURE, '--args', '{"amountCents":100}', '--only', 'second'],
    );
    expect(value.broken).toEqual([]);
    expect(code).toBe(0);
    const refused = value.scenarios.find(({ scenario }) => scenario === 'second: refused for good');
    expect(refused).toMatchObject({ end: 'failed, rolled back', effects: 1, undone: 1 });
  });

  test('[S6.6] an action without a count is refused with what to write, and nothing is sent', async () => {
    const { code, value } = await holdfastJson(
      place,
      ...['rehearse', 'target_conditional', ...TARGET, '--args', '{"value":"v"}'],
    );
    expect({ code, value }).toMatchObject({ code: 2, value: { error: { code: 'invalid_configuration' } } });
    expect(await target.requests({ action: 'target_conditional' })).toEqual([]);
  });

  test('an action that is not there is refused by name, with those that are', async () => {
    const { code, stderr } = await holdfast(place, 'rehearse', 'nobody', ...WRONG);
    expect(code).toBe(2);
    expect(stderr).toContain('wrongly_conditional, wrongly_verified, wrongly_undone, wrongly_keyed');
  });
});
