/** The demo's chapter about rehearsal: the same crash for a handler that keeps its promise and one that only says so. */
import type { Action } from '../../contract/implement-action.ts';
import type { RehearsalReport } from '../../testing/index.ts';
import type { Chapter } from './chapter.ts';

const CRASH = 'crash between call and verify';

/** Loaded by this chapter alone: nothing else in the demo needs a test server. */
const testing = () => import('../../testing/index.ts');

export const rehearsed: Chapter = async ({ stage, say }) => {
  say('two charges say that they are safe to send again; each is rehearsed, as with: holdfast rehearse NAME');
  const { openTestServer, rehearse } = await testing();
  const server = await openTestServer('local');
  try {
    const { right, careless } = await stage.rehearsedActions();
    const rehearsal = (action: Action): Promise<RehearsalReport> =>
      rehearse(action, {
        server,
        only: CRASH,
        onScenario: ({ scenario, effects, verdict }) =>
          say(`  ${action.contract.name}, ${scenario}: the provider counts ${effects}, ${verdict}`),
      });
    return judged(...(await Promise.all([rehearsal(right), rehearsal(careless)])));
  } finally {
    await server.close();
  }
};

function judged(right: RehearsalReport, careless: RehearsalReport) {
  const counted = (report: RehearsalReport): number =>
    report.scenarios.find(({ scenario }) => scenario === CRASH)?.effects ?? -1;
  const told = (report: RehearsalReport): string =>
    `${counted(report)} effect${counted(report) === 1 ? '' : 's'}, ${report.ok ? 'kept' : 'broken'}`;
  const effects = counted(careless);
  return {
    chapter: 'a handler rehearsed',
    expected: 'the right one keeps its promise, the careless one is found',
    seen: `${told(right)}; careless: ${told(careless)}`,
    effects,
    isAsExpected: right.ok && counted(right) === 1 && !careless.ok && effects === 2,
  };
}
