/**
 * `npm run conformance [-- --json]`: the official MCP conformance suite against the real gateway, with the fixtures of
 * test/conformance. Prints a verdict for each scenario; exit code 1 on a failure that test/conformance/baseline.yml does
 * not name, and on an entry of it that is no longer needed.
 */
import { tableLines } from '../src/cli/terminal.ts';
import { openConformanceGateway } from '../test/conformance/gateway.ts';
import { REVISIONS, runSuite } from '../test/conformance/suite.ts';
import type { ScenarioResult } from '../test/conformance/suite.ts';

const WIDTH = 160;
const MARKS = { passed: '✓', skipped: '-', expected: '~', stale: '✗', failed: '✗' } as const;

const isUnexpected = ({ verdict }: ScenarioResult) => verdict === 'failed' || verdict === 'stale';

const gateway = await openConformanceGateway();
try {
  const results: ScenarioResult[] = [];
  for (const revision of REVISIONS) results.push(...(await runSuite(gateway.url, revision)));
  if (process.argv.includes('--json')) console.log(JSON.stringify(results));
  else for (const line of report(results)) console.log(line);
  process.exitCode = results.some(isUnexpected) ? 1 : 0;
} finally {
  await gateway.close();
}

function report(results: readonly ScenarioResult[]): string[] {
  const count = (verdict: ScenarioResult['verdict']) =>
    results.filter((result) => result.verdict === verdict).length;
  const unexpected = results
    .filter(isUnexpected)
    .flatMap(({ revision, scenario, failed }) =>
      failed.map(({ check, message }) => `✗ ${revision} ${scenario}:${check}\n    ${message}`),
    );
  return [
    ...tableLines(results, columns(), WIDTH),
    ...unexpected,
    `${count('passed')} passed, ${count('expected')} failed as expected, ${count('skipped')} skipped by the suite, ` +
      `${count('failed')} failed, ${count('stale')} stale entries`,
  ];
}

function columns() {
  return [
    { title: '', cell: ({ verdict }: ScenarioResult) => MARKS[verdict] },
    { title: 'REVISION', cell: ({ revision }: ScenarioResult) => revision },
    { title: 'SCENARIO', cell: ({ scenario }: ScenarioResult) => scenario },
    { title: 'PASSED', cell: ({ passed }: ScenarioResult) => String(passed) },
    { title: 'FAILED', cell: ({ failed }: ScenarioResult) => String(failed.length) },
    { title: 'VERDICT', cell: ({ verdict }: ScenarioResult) => verdict, flexible: true },
  ];
}
