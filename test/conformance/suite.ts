/**
 * Runs the official suite against a URL and reads what it found: one verdict for each scenario of each requirement set,
 * with the suite's own baseline file of what is expected to fail.
 *
 * The suite gives some answers no more than half a second, whatever else the machine does: a scenario that fails is
 * judged by a second run, by itself.
 *
 * Unlike the suite itself, which leaves the scenarios of extensions and those added later out of its verdict, this one
 * judges every scenario that ran.
 */
import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parse } from 'yaml';

const ROOT = join(import.meta.dirname, '../..');
const SUITE = join(ROOT, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');
const BASELINE = join(import.meta.dirname, 'baseline.yml');

export const REVISIONS = ['2026-07-28', '2025-11-25'] as const;
export type Revision = (typeof REVISIONS)[number];

export interface ScenarioResult {
  revision: Revision;
  scenario: string;
  passed: number;
  /** Ids of checks that failed or warned, each with what the suite said. */
  failed: { check: string; message: string }[];
  /** `expected`: the baseline has all that failed. `stale`: it has something that passed. */
  verdict: 'passed' | 'skipped' | 'expected' | 'stale' | 'failed';
}

interface Check {
  id: string;
  status: 'SUCCESS' | 'FAILURE' | 'WARNING' | 'SKIPPED' | 'INFO';
  errorMessage?: string;
}

/** Everything that `revision` requires of a server, and what the suite runs beside it. */
export async function runSuite(url: string, revision: Revision): Promise<ScenarioResult[]> {
  const expected = await readBaseline();
  const run = async (...which: string[]): Promise<ScenarioResult[]> =>
    (await checksOf(['server', '--url', url, ...which])).map(({ scenario, checks }) =>
      judge(revision, scenario, checks, expected.get(scenario) ?? null),
    );
  const results: ScenarioResult[] = [];
  for (const result of await run('--requirements', revision)) {
    const again = ['--scenario', result.scenario, '--spec-version', revision, '--force'];
    results.push(result.verdict === 'failed' ? ((await run(...again))[0] ?? result) : result);
  }
  return results;
}

/** What one run of the suite found, by scenario. */
async function checksOf(args: readonly string[]): Promise<{ scenario: string; checks: Check[] }[]> {
  const folder = await mkdtemp(join(tmpdir(), 'holdfast-conformance-'));
  try {
    const output = await runCommand([...args, '-o', folder]);
    const names = (await readdir(folder)).sort();
    if (names.length === 0) throw new Error(`the suite left no results:\n${output}`);
    return await Promise.all(
      names.map(async (name) => ({
        scenario: name.replace(/^server-/, '').replace(/-\d{4}-\d{2}-\d{2}T[\d-]+Z$/, ''),
        checks: JSON.parse(await readFile(join(folder, name, 'checks.json'), 'utf8')) as Check[],
      })),
    );
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Null in place of checks: the whole scenario is expected to fail. */
type Expected = ReadonlySet<string> | 'all';

function judge(
  revision: Revision,
  scenario: string,
  checks: readonly Check[],
  expected: Expected | null,
): ScenarioResult {
  const failed = checks
    .filter(({ status }) => status === 'FAILURE' || status === 'WARNING')
    .map(({ id, errorMessage = '' }) => ({ check: id, message: errorMessage }));
  const passed = checks.filter(({ status }) => status === 'SUCCESS').length;
  return { revision, scenario, passed, failed, verdict: verdictOf(passed, failed, expected) };
}

function verdictOf(
  passed: number,
  failed: readonly { check: string }[],
  expected: Expected | null,
): ScenarioResult['verdict'] {
  const isExpected = ({ check }: { check: string }) => expected === 'all' || expected?.has(check) === true;
  if (failed.some((each) => !isExpected(each))) return 'failed';
  const hasStale =
    expected === 'all'
      ? failed.length === 0
      : [...(expected ?? [])].some((check) => failed.every((each) => each.check !== check));
  if (hasStale) return 'stale';
  if (failed.length > 0) return 'expected';
  return passed > 0 ? 'passed' : 'skipped';
}

/** The suite's format: entries `scenario` or `scenario:check-id` under `server`. */
async function readBaseline(): Promise<Map<string, Expected>> {
  const { server } = parse(await readFile(BASELINE, 'utf8')) as { server: string[] };
  const expected = new Map<string, Expected>();
  for (const entry of server) {
    const [scenario = '', check] = entry.split(/:(.*)/);
    const known = expected.get(scenario);
    if (check === undefined) expected.set(scenario, 'all');
    else if (known !== 'all') expected.set(scenario, new Set([...(known ?? []), check]));
  }
  return expected;
}

/** Its exit code says no more than the results do. */
function runCommand(args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, [SUITE, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', () => resolve(output));
  });
}
