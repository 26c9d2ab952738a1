/** S3.3: what every version recorded, histories and journals alike, is replayed by the code as it is. */
import { readFileSync, readdirSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { beforeAll, describe, expect, test } from 'vitest';
import { reduce } from '../../src/task/reduce.ts';
import type { TaskState } from '../../src/task/state.ts';
import { upcastEvent, upcastState } from '../../src/task/upcast.ts';
import type { Stored } from '../../src/task/upcast.ts';
import { outcomeOf } from '../../src/task/view.ts';
import { workflowBundleFile } from '../support/workflow-bundle-file.ts';
import { CONTINUED, PATHS } from './paths.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const versions = readdirSync(here('histories'));
const NEWEST = versions.at(-1) ?? '';

const filesOf = (kind: string, version: string) =>
  readdirSync(here(`${kind}/${version}`)).map((file) => join(here(`${kind}/${version}`), file));
const read = (file: string): unknown => JSON.parse(readFileSync(file, 'utf8'));
const names = (files: string[]) => files.map((file) => basename(file, '.json')).sort();

let codePath: string;
const replayOptions = () => ({
  workflowBundle: { codePath },
  sinks: { holdfastHints: { changed: { fn: () => undefined, callDuringReplay: false } } },
});
beforeAll(async () => {
  // The tampered history is reported as a warning, too.
  const logging = { filter: { core: 'ERROR', other: 'ERROR' }, forward: {} } as const;
  Runtime.install({ logger: new DefaultLogger('ERROR'), telemetryOptions: { logging } });
  codePath = await workflowBundleFile();
});

/** The errors that replaying brought up, by name. */
async function replay(histories: { name: string; history: unknown }[]): Promise<Record<string, string>> {
  const errors: Record<string, string> = {};
  const replayed = histories.map(({ name, history }) => ({
    workflowId: name,
    history: historyFromJSON(history),
  }));
  for await (const { workflowId, error } of Worker.runReplayHistories(replayOptions(), replayed))
    if (error) errors[workflowId] = String(error);
  return errors;
}

describe('recorded histories', () => {
  test('there is one of the newest version for every path [S3.3][case 15]', () => {
    const expected = [...Object.keys(PATHS), ...Object.values(CONTINUED)].sort();
    expect(names(filesOf('histories', NEWEST))).toEqual(expected);
  });

  test.each(versions)('of %s replay [S3.3][case 15]', async (version) => {
    const histories = filesOf('histories', version).map((file) => ({
      name: basename(file),
      history: read(file),
    }));
    expect(await replay(histories)).toEqual({});
  });

  test('one that the code can not have written is found out [S3.3]', async () => {
    const text = readFileSync(here(`histories/${NEWEST}/dispatched.json`), 'utf8');
    const history: unknown = JSON.parse(text.replaceAll('attemptOperation', 'sendEmail'));
    const errors = await replay([{ name: 'dispatched', history }]);
    expect(errors['dispatched']).toMatch(/DeterminismViolation|[Nn]ondeterminism/);
  });
});

interface RecordedJournal {
  events: (Stored & { seq: number })[];
  state: Stored;
}

describe('recorded journals', () => {
  const journals = versions.flatMap((version) => filesOf('journals', version));

  test('there is one of the newest version for every path that has one [S3.3]', () => {
    const expected = [...Object.keys(PATHS), CONTINUED.after].filter((name) => name !== 'misuse').sort();
    expect(names(filesOf('journals', NEWEST))).toEqual(expected);
  });

  test.each(journals.map((file) => [basename(file, '.json'), file]))(
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
});
