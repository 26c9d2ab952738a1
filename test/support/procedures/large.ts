/** Procedures whose steps bring and take much: workflow code, bundled into the worker. */
import { procedure } from 'holdfast/procedure';
import type { Action } from '../../../src/index.ts';

type Actions = readonly Action[];

/** Each part is kept in the code's hands until the end. */
export const collect = procedure<Actions, { parts: number; fail: boolean }>(
  'collect',
  async (p, { parts, fail }) => {
    let characters = 0;
    for (let part = 1; part <= parts; part += 1) {
      const { text } = (await p.step('part', 'fetch_part', { name: `part ${part}`, padding: '' })) as {
        text: string;
      };
      characters += text.length;
    }
    if (fail) throw new Error('it was all in vain');
    return { characters };
  },
);

/** Takes much, again and again. */
export const heap = procedure<Actions, { parts: number; characters: number }>(
  'heap',
  async (p, { parts, characters }) => {
    const padding = 'x'.repeat(characters);
    for (let part = 1; part <= parts; part += 1)
      await p.step('part', 'fetch_part', { name: `part ${part}`, padding });
    return { parts };
  },
);
