import { readFileSync } from 'node:fs';
import { beforeAll, describe, expect, it } from 'vitest';
import { raceTranscripts, transcriptsPage } from '../races/race-transcripts.ts';
import type { Transcript } from '../races/race-transcripts.ts';

describe('the races about one request', () => {
  let transcripts: Transcript[];
  beforeAll(async () => {
    transcripts = await raceTranscripts();
  });
  const ends = (race: string) =>
    Object.fromEntries(
      transcripts
        .filter((each) => each.race === race)
        .map(({ transport, terminal, hasFinalResponse }) => [transport, [terminal, hasFinalResponse]]),
    );

  it('are won by whoever is first, by the signal of each transport alone [M5.1] [M5.2] [M4.1]', () => {
    expect(ends('cancel wins')).toEqual({
      'stdio, 2026-07-28': ['cancelled', false],
      'stdio, 2025-11-25': ['cancelled', false],
      'Streamable HTTP, 2025-11-25, in a session': ['cancelled', false],
    });
    expect(ends('HTTP stream closed')).toEqual({
      'Streamable HTTP, 2026-07-28': ['cancelled', false],
      'Streamable HTTP, 2025-11-25, in a session': ['answered', false],
      'Streamable HTTP, 2025-11-25, without one': ['left, without a cancel', false],
    });
    expect(Object.values(ends('a posted cancel does nothing'))).toEqual([
      ['answered', true],
      ['answered', true],
    ]);
    expect(Object.values(ends('completion wins'))).toEqual(Array(5).fill(['answered', true]));
    expect(Object.values(ends('progress, then the maximum timeout'))).toEqual(
      Array(5).fill(['answered, after the maximum timeout', true]),
    );
  });

  it('give up their task only where a cancel won [M5.3]', () => {
    for (const { terminal, task } of transcripts)
      expect(task.startsWith('given up')).toBe(terminal === 'cancelled');
  });

  it('have nothing after the response or the cancel [M4.2]', () => {
    for (const { lines } of transcripts) expect(lines.at(-1)).toBe('← nothing more');
  });

  it('are kept in docs/evidence/races.md as `npm run races` writes them', () => {
    const kept = readFileSync(new URL('../../docs/evidence/races.md', import.meta.url), 'utf8');
    expect(kept).toBe(transcriptsPage(transcripts));
  });
});
