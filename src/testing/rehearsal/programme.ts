/** Which scenarios an action's rehearsal plays, and in which order: the clean run first, the others some at a time. */
import type { ActionContract } from '../../contract/define-action.ts';
import { eachAtMost } from './at-once.ts';
import { END } from './endings.ts';
import type { CleanRun } from './forge.ts';
import type { Performed } from './perform.ts';
import type { RehearsalReport } from './report.ts';
import type { Scenario } from './scenario.ts';
import { CLEAN, SCENARIOS } from './scenarios/index.ts';
import type { Terms } from './terms.ts';

export interface Entry {
  group: string;
  scenario: Scenario;
}

export type Play = (entry: Entry, clean: CleanRun | undefined) => Promise<Performed>;

export interface ProgrammeOptions {
  terms: Terms;
  output: ActionContract['output'];
  only: string | undefined;
  atOnce: number;
  onPlayed(performed: Performed, done: number, of: number): void;
}

export interface Played {
  /** In the order of the report. */
  performed: Performed[];
  skipped: RehearsalReport['skipped'];
}

/** What does not work when nothing goes wrong is not worth rehearsing further. */
export async function playAll(play: Play, options: ProgrammeOptions): Promise<Played> {
  const cleanRun = await play({ group: CLEAN.group, scenario: CLEAN.scenario }, undefined);
  const clean = honestIn(cleanRun);
  const { entries, skipped } = choose(options, clean);
  const of = clean === null ? 1 : entries.length + 1;
  options.onPlayed(cleanRun, 1, of);
  if (clean === null) {
    const reason = 'the clean run did not complete';
    const left = entries.map(({ group, scenario }) => ({ group, scenario: scenario.name, reason }));
    return { performed: [cleanRun], skipped: [...left, ...skipped] };
  }
  const performed = new Map<Entry, Performed>();
  await eachAtMost(options.atOnce, entries, async (entry) => {
    const each = await play(entry, clean);
    performed.set(entry, each);
    options.onPlayed(each, performed.size + 1, of);
  });
  const inOrder = entries.flatMap((entry) => performed.get(entry) ?? []);
  return { performed: [cleanRun, ...inOrder], skipped };
}

/** Null when it did not complete. */
function honestIn({ report, answer, args, otherwise }: Performed): CleanRun | null {
  if (report.end !== END.completed || answer === null) return null;
  return { args, result: answer.result, isCountedByArgs: otherwise === 0 };
}

function choose({ terms, output, only }: ProgrammeOptions, clean: CleanRun | null) {
  const entries: Entry[] = [];
  const skipped: Played['skipped'] = [];
  const known = clean === null ? undefined : { ...clean, output };
  for (const { group, scenarios } of SCENARIOS) {
    for (const scenario of scenarios) {
      const isLeftOut = only !== undefined && !`${group} ${scenario.name}`.includes(only);
      const reason = isLeftOut ? 'left out by `only`' : (scenario.unless?.(terms, known) ?? null);
      if (reason === null) entries.push({ group, scenario });
      else skipped.push({ group, scenario: scenario.name, reason });
    }
  }
  return { entries, skipped };
}
