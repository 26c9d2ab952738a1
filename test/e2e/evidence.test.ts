/** The evidence of docs/evidence is what `npm run evidence` writes today, measured figures apart. */
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { withoutFigures } from '../evidence/page.ts';

const ROOT = join(import.meta.dirname, '../..');
const KEPT = join(ROOT, 'docs/evidence');

let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'holdfast-evidence-'));
  const script = join(ROOT, 'scripts/evidence.ts');
  const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
  await promisify(execFile)(process.execPath, [...flags, script, folder]);
}, 300_000);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('the evidence', () => {
  const names = readdirSync(KEPT).sort();

  it('is of the files that are kept, and its table lists each', () => {
    expect(readdirSync(folder).sort()).toEqual(names);
    const contents = readFileSync(join(folder, 'README.md'), 'utf8');
    for (const name of names.filter((each) => each !== 'README.md')) expect(contents).toContain(`[${name}]`);
  });

  it.each(names)('%s says what the kept one says, measured figures apart', (name) => {
    const [written, kept] = [folder, KEPT].map((place) => readFileSync(join(place, name), 'utf8'));
    expect(withoutFigures(written ?? '')).toBe(withoutFigures(kept ?? ''));
  });

  it('shows one effect for one key, raced for and asked for again after everything had died', () => {
    const page = (name: string) => readFileSync(join(folder, name), 'utf8');
    expect(page('same-key-race.md')).toContain('own count: **1**');
    expect(page('reopen-and-mutation.md')).toContain('"replayed": true');
    expect(page('reopen-and-mutation.md')).toContain('own count: **1**');
    expect(JSON.parse(page('ledger-record.json'))).toMatchObject({ verified: { ok: true, entries: 3 } });
  });
});
