/** `holdfast alerts` as people use it: what was not delivered, why, and having it delivered again (S6.5, S9). */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Ledger, StoredAlert } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import * as fixture from '../contract/ledger-fixture.ts';
import { holdfast, holdfastJson } from '../support/holdfast-command.ts';
import type { Place } from '../support/holdfast-command.ts';

describe('holdfast alerts', () => {
  let place: Place;
  let ledger: Ledger;
  beforeEach(async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'holdfast-alerts-'));
    const url = `sqlite:${join(cwd, 'ledger.db')}`;
    ledger = await openLedger({ url });
    await ledger.migrate();
    for (let index = 0; index < 2; index += 1) {
      const work = await fixture.reserved(ledger);
      const claim = await fixture.claimed(ledger, work);
      await ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
    }
    const [message] = await ledger.claimOutbox(1, 60_000);
    await ledger.bury(message?.id ?? 0, message?.token ?? '', 'the target answered HTTP 410');
    const env = { HOLDFAST_DATABASE_URL: url, HOLDFAST_TENANT: 'acme', TEMPORAL_ADDRESS: '127.0.0.1:1' };
    place = { cwd, env };
  });
  afterEach(async () => {
    await ledger.close();
    rmSync(place.cwd, { recursive: true, force: true });
  });

  const listed = async (...args: string[]) =>
    (await holdfastJson<StoredAlert[]>(place, 'alerts', ...args)).value.map(({ id, state }) => [id, state]);

  test('lists them, names the dead and why, and doctor warns of them [S9]', async () => {
    expect(await listed()).toEqual([
      [2, 'waiting'],
      [1, 'dead'],
    ]);
    expect(await listed('--dead')).toEqual([[1, 'dead']]);
    const { stdout } = await holdfast(place, 'alerts', '--dead');
    expect(stdout).toContain('HTTP 410');
    const { value } = await holdfastJson<{ check: string; verdict: string; found: string }[]>(
      place,
      'doctor',
    );
    const finding = value.find(({ check }) => check === 'alerts');
    expect(finding).toMatchObject({ verdict: 'warning' });
    expect(finding?.found).toContain('1 given up, 1 waiting');
  });

  test('retry has one, or all that are dead, delivered again; another’s is not there [S9]', async () => {
    const foreign = { ...place, env: { ...place.env, HOLDFAST_TENANT: 'globex' } };
    const refused = await holdfastJson<{ error: { code: string } }>(foreign, 'alerts', 'retry', '1');
    expect([refused.code, refused.value.error.code]).toEqual([2, 'invalid_arguments']);
    for (const wrong of [['retry'], ['retry', '1', '--all']])
      expect((await holdfast(place, 'alerts', ...wrong)).code).toBe(2);
    const retried = await holdfastJson(place, 'alerts', 'retry', '--all');
    expect(retried).toEqual({ code: 0, value: { retried: [1] } });
    expect(await listed('--waiting')).toEqual([
      [2, 'waiting'],
      [1, 'waiting'],
    ]);
  });
});
