/**
 * The evidence (docs/evidence): the real system played once, and a page for each thing it is to show. Times, ids and hashes
 * have stable names, so that two runs differ in measured figures alone.
 */
import { raceTranscripts, transcriptsPage } from '../races/race-transcripts.ts';
import { FaultSystem } from '../support/fault-system.ts';
import { cancelTrace } from './cancel-trace.ts';
import { oneKey } from './one-key.ts';
import { overload } from './overload.ts';
import { StableNames, table } from './page.ts';
import type { Pages } from './page.ts';
import { proxy } from './proxy.ts';
import { reconnectPlanPage } from './reconnect-plan.ts';
import { retryTablePage } from './retry-table.ts';

export async function evidence(): Promise<Pages> {
  const pages: Pages = {
    'races.md': transcriptsPage(await raceTranscripts()),
    'retry-table.md': await retryTablePage(),
    'reconnect-plan.md': reconnectPlanPage(),
    ...(await proxy()),
    ...(await overload()),
    ...(await onRealSystem()),
  };
  return { 'README.md': contentsPage(pages), ...pages };
}

async function onRealSystem(): Promise<Pages> {
  const system = await FaultSystem.open();
  try {
    return {
      ...(await oneKey(system, new StableNames())),
      ...(await cancelTrace(system, new StableNames())),
    };
  } finally {
    await system.close();
  }
}

const SHOWS: Readonly<Record<string, string>> = {
  'races.md':
    'on each transport: cancel wins, completion wins, progress then the maximum timeout, the stream closed; the signal, the terminal state, what the client ignores',
  'retry-table.md':
    'every shipped tool: effect class, who dedupes, what a lost answer leads to, look-up, rollback, deadlines',
  'same-key-race.md': 'two gateway processes, one key, at a barrier: both answers, and one effect',
  'ledger-record.json':
    'the ledger’s row of that call, its audit entry by entry with the chain of hashes, and the verdict on it',
  'reopen-and-mutation.md':
    'all processes dead, a new one answers `replayed`; a caller that spoils its result spoils nobody else’s',
  'overload.md':
    'typed answers with `Retry-After`; memory under 50 readers that read nothing; the cut of a stalled one',
  'proxy.md': 'headers, first byte, comments, the idle policy, and what a cut stream loses',
  'reconnect-plan.md':
    'what the client does about each thing that was under way, and the read that is authoritative',
  'cancel-trace.md':
    'acknowledged, working, observed, terminal: with the answer and the effects at each step',
};

function contentsPage(pages: Pages): string {
  const rows = Object.keys(pages).map((name) => {
    const shows = SHOWS[name];
    if (shows === undefined) throw new Error(`${name} is in no table of evidence`);
    return [`[${name}](${name})`, shows];
  });
  return `# Evidence

Written by \`npm run evidence\`, which plays the real system once: Temporal, worker and gateway processes, and a target that counts its
effects. Ids, times and hashes have names here (\`task-1\`, \`TIME\`, \`hash-1\`), so that a second run changes measured figures alone.
\`test/e2e/evidence.test.ts\` runs it again and compares.

${table(['file', 'shows'], rows)}
What dies at the worst moment: [crash windows](../crash-windows.md). The fourteen ways calls fail in production: [failure modes](../failure-modes.md).
`;
}
