/** S3.3: what every version recorded, histories and journals alike, is replayed by the code as it is. */
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';
import type { JournalEntry, ProcedureEvent } from '../../src/task/procedure-event.ts';
import { reduce } from '../../src/task/reduce.ts';
import type { TaskState } from '../../src/task/state.ts';
import { upcastEvent, upcastState } from '../../src/task/upcast.ts';
import type { Stored } from '../../src/task/upcast.ts';
import { outcomeOf } from '../../src/task/view.ts';
import { reduceProcedure } from '../../src/task/procedure-state.ts';
import type { ProcedureState } from '../../src/task/procedure-state.ts';
import { bundle } from '../../worker/workflow-source.ts';
import { CONTINUED, LEASE, PATHS } from './paths.ts';
import { PROCEDURES_CODE, PROCEDURE_CONTINUED, PROCEDURE_PATHS } from './procedure-paths.ts';
import { REMOTE_WATCHES } from './remote-paths.ts';
import { askedIn, comparable, workflowIdIn } from './recorded-inputs.ts';
import type { RecordedHistory } from './recorded-inputs.ts';
import type { Asked } from './scheduled-inputs.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const versions = readdirSync(here('histories'));
const NEWEST = versions.at(-1) ?? '';

const filesOf = (kind: string, version: string) =>
  readdirSync(here(`${kind}/${version}`)).map((file) => join(here(`${kind}/${version}`), file));
const read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
const names = (files: string[]) => files.map((file) => basename(file, '.json')).sort();

/** Of the recorded procedures and no others: what tasks without procedures do is the same in every bundle. */
let workflowBundle: Awaited<ReturnType<typeof bundle>>;
const replayOptions = (asked: Asked[]) => ({
  workflowBundle,
  sinks: {
    holdfastHints: { changed: { fn: () => undefined, callDuringReplay: false } },
    replay: {
      asked: {
        fn: (_info: unknown, what: string, given: string) => void asked.push([what, JSON.parse(given)]),
        callDuringReplay: true,
      },
    },
  },
});
beforeAll(async () => {
  // The tampered history is reported as a warning, too.
  const logging = { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } as const;
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging } });
  workflowBundle = await bundle(PROCEDURES_CODE, [here('scheduled-inputs.ts')]);
});

interface Replayed {
  name: string;
  error: string | null;
  /** In the order the code asked for it. */
  asked: Asked[];
}

/** One after the other, so that what is told is the one's that is under way. */
async function replay(histories: { name: string; history: RecordedHistory }[]): Promise<Replayed[]> {
  const asked: Asked[] = [];
  const pushed = histories.map(({ history }) => ({
    workflowId: workflowIdIn(history),
    history: historyFromJSON(history),
  }));
  const replayed: Replayed[] = [];
  for await (const { error } of Worker.runReplayHistories(replayOptions(asked), pushed)) {
    const name = histories[replayed.length]?.name ?? '';
    replayed.push({ name, error: error ? String(error) : null, asked: asked.splice(0) });
  }
  return replayed;
}

describe('recorded histories', () => {
  test('there is one of the newest version for every path [S3.3][case 15]', () => {
    const paths = { ...PATHS, ...PROCEDURE_PATHS };
    const continued = [...Object.values(CONTINUED), ...Object.values(PROCEDURE_CONTINUED)];
    const others = [...continued, ...REMOTE_WATCHES, LEASE];
    expect(names(filesOf('histories', NEWEST))).toEqual([...Object.keys(paths), ...others].sort());
  });

  test.each(versions)(
    'of %s replay, asking for the same with the same arguments [S3.3][case 15]',
    async (version) => {
      const histories = filesOf('histories', version).map((file) => ({
        name: basename(file),
        history: read(file) as RecordedHistory,
      }));
      const replayed = await replay(histories);
      expect(replayed.filter(({ error }) => error !== null)).toEqual([]);
      expect(replayed).toHaveLength(histories.length);
      for (const [index, { name, asked }] of replayed.entries()) {
        const recorded = comparable(askedIn(histories[index]?.history ?? { events: [] }));
        // Fields are added to what is persisted, never taken away or changed.
        expect(comparable(asked), name).toMatchObject(recorded);
        expect(asked, name).toHaveLength(recorded.length);
      }
    },
  );

  test.each([
    ['dispatched', 'attemptOperation'],
    ['procedure-completed', 'performStep'],
    ['remote-completed-watch', 'pollRemoteTask'],
  ])('one that the code can not have written is found out: %s [S3.3]', async (name, activity) => {
    const text = readFileSync(here(`histories/${NEWEST}/${name}.json`), 'utf8');
    const history = JSON.parse(text.replaceAll(activity, 'sendEmail')) as RecordedHistory;
    const [replayed] = await replay([{ name, history }]);
    expect(replayed?.error).toMatch(/DeterminismViolation|[Nn]ondeterminism/);
  });
});

interface RecordedJournal {
  events: (Stored & { seq: number })[];
  state: Stored;
}

describe('recorded journals', () => {
  const all = versions.flatMap((version) => filesOf('journals', version));
  const isOfProcedure = (file: string) => basename(file).startsWith('procedure-');
  const named = (files: string[]) => files.map((file) => [basename(file, '.json'), file] as const);

  test('there is one of the newest version for every path that has one [S3.3]', () => {
    const ofActions = [...Object.keys(PATHS), CONTINUED.after].filter((name) => name !== 'misuse');
    const ofProcedures = [...Object.keys(PROCEDURE_PATHS), PROCEDURE_CONTINUED.after];
    expect(names(filesOf('journals', NEWEST))).toEqual([...ofActions, ...ofProcedures].sort());
  });

  test.each(named(all.filter((file) => !isOfProcedure(file))))(
    '%s reads as it was written, and says the same end [S3.3][S3.4]',
    (_name, file) => {
      const { events, state } = read(file) as RecordedJournal;
      const recorded = outcomeOf(upcastState(state));
      const replayed = events
        .map(upcastEvent)
        .reduce<TaskState | null>((before, event) => reduce(before, event), null);
      expect(replayed && outcomeOf(replayed)).toEqual(recorded);
      const ends = events.map(upcastEvent).filter(({ type }) => type === 'task_ended');
      expect(ends).toHaveLength(1);
      if (recorded.status === 'cancelled') expect(['none', 'rolled_back']).toContain(recorded.effect);
    },
  );

  test.each(named(all.filter(isOfProcedure)))(
    '%s: a procedure’s own events say the same end [S3.3][S3.4]',
    (_name, file) => {
      const { events, state } = read(file) as { events: JournalEntry[]; state: TaskState };
      const reduced = events
        .filter(isOwn)
        .reduce<ProcedureState | null>((before, event) => reduceProcedure(before, event), null);
      expect(reduced?.phase).toEqual({ kind: 'ended' });
      expect([reduced?.end, reduced?.result]).toEqual([state.end, state.result]);
      if (state.end?.status === 'cancelled') expect(['none', 'rolled_back']).toContain(state.end.effect);
    },
  );
});

const ABOUT_STEPS = /^(step_opened|step_closed|step_undone|sleep_\w+|child_\w+)$/;

/** Not one of a step’s own events, which all name their step. */
function isOwn(event: JournalEntry): event is ProcedureEvent {
  return !('step' in event.data) || ABOUT_STEPS.test(event.type);
}
