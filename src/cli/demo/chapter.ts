/** What a chapter of the demo is and answers. */
import type { DemoChild } from './child.ts';
import type { Stage } from './stage.ts';
import type { ToolAnswer } from './tool-call.ts';

export interface ChapterResult {
  chapter: string;
  expected: string;
  seen: string;
  /** Effects as the target counts them. */
  effects: number;
  isAsExpected: boolean;
}

export interface Performance {
  stage: Stage;
  /** The worker that is up just now; chapters that kill it put the next one here. */
  worker: DemoChild;
  say(line: string): void;
}

export type Chapter = (performance: Performance) => Promise<ChapterResult>;

export function result(
  chapter: string,
  expected: string,
  answer: ToolAnswer,
  effects: number,
  isAsExpected: boolean,
): ChapterResult {
  const { status, effect, cause, replayed } = answer.task;
  const seen = [
    status ?? 'refused',
    effect && `effect ${effect}`,
    cause !== 'committed' && cause,
    replayed && 'replayed',
  ];
  return { chapter, expected, seen: seen.filter(Boolean).join(', '), effects, isAsExpected };
}
