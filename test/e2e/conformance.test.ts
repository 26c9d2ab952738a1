/** The official conformance suite against the real gateway, as `npm run conformance` runs it. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openConformanceGateway } from '../conformance/gateway.ts';
import type { ConformanceGateway } from '../conformance/gateway.ts';
import { REVISIONS, runSuite } from '../conformance/suite.ts';
import type { Revision, ScenarioResult } from '../conformance/suite.ts';

let gateway: ConformanceGateway;
const results = new Map<Revision, ScenarioResult[]>();

beforeAll(async () => {
  gateway = await openConformanceGateway();
});
afterAll(() => gateway.close());

const resultsOf = async (revision: Revision): Promise<ScenarioResult[]> => {
  const known = results.get(revision) ?? (await runSuite(gateway.url, revision));
  results.set(revision, known);
  return known;
};
const named = (all: readonly ScenarioResult[], isNamed: (scenario: string) => boolean) =>
  all.filter(({ scenario }) => isNamed(scenario)).map(({ scenario, verdict }) => ({ scenario, verdict }));

describe.each(REVISIONS)('the suite’s requirements of %s', (revision) => {
  it('fail nowhere but where the baseline says why, and it says nothing that is no longer so [M1.1]', async () => {
    const found = await resultsOf(revision);
    expect(found.length).toBeGreaterThan(30);
    expect(found.filter(({ verdict }) => verdict === 'failed' || verdict === 'stale')).toEqual([]);
  });
});

it('every scenario of the Tasks extension that the suite can run passes [M2.1] [M2.2] [M2.3] [M2.4] [M2.6]', async () => {
  const tasks = named(await resultsOf('2026-07-28'), (scenario) => scenario.startsWith('tasks-'));
  expect(tasks).toHaveLength(10);
  expect(tasks.filter(({ verdict }) => verdict !== 'passed')).toEqual([
    { scenario: 'tasks-status-notifications', verdict: 'skipped' },
  ]);
});

it('headers, rebinding and elicitation, which Holdfast has, pass without exception [M7.1] [M3.1]', async () => {
  const isOurs = (scenario: string) => /header|dns|elicitation|tools-list|progress|session/.test(scenario);
  for (const revision of REVISIONS) {
    const ours = named(await resultsOf(revision), isOurs);
    expect(ours.length).toBeGreaterThan(4);
    expect(ours.filter(({ verdict }) => verdict !== 'passed')).toEqual([]);
  }
});
