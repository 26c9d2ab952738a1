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

/** Takes much at once: of itself, or each time in a child of its own. */
const fanned = procedure<Actions, { name: string; padding: string; fail: boolean }>(
  'fanned',
  async (p, { name, padding, fail }) => {
    await p.step('part', 'fetch_part', { name, padding });
    if (fail) throw new Error('it was in vain');
    return { name };
  },
);
export const fan = procedure<
  Actions,
  { parts: number; characters: number; inChildren: boolean; fail: boolean }
>('fan', async (p, { parts, characters, inChildren, fail }) => {
  const padding = 'x'.repeat(characters);
  const all = Array.from({ length: parts }, (_, index) => {
    const args = { name: `part ${index + 1}`, padding };
    if (!inChildren) return p.step(`part-${index + 1}`, 'fetch_part', args);
    return p.child(`child-${index + 1}`, fanned, { ...args, fail }).catch(() => null);
  });
  await Promise.all(all);
  return { parts };
});

/** More than the engine takes in one payload, at each place where the code may hand it something. */
export const excess = procedure<Actions, { at: string; text?: string }>('excess', async (p, { at }) => {
  const text = 'ö'.repeat(1_500_000);
  const part = { name: 'part 1', padding: at === 'step' || at === 'decide' ? text : 'x' };
  if (at === 'decide') await p.decide('choice', 'weigh', part);
  await p.step('part', 'fetch_part', part);
  if (at === 'approve') await p.approve('home', { view: { text }, roles: ['boss'], expiresIn: '1h' });
  if (at === 'restart') return p.restart({ at: 'nowhere', text });
  if (at === 'a return that is no JSON') return { parts: 1n };
  return at === 'return' ? { text } : { at };
});

/** Its record may cross continue-as-new, and so may its input, but not the two together. */
export const laden = procedure<Actions, { text: string; characters: number }>(
  'laden',
  async (p, { text, characters }) => {
    await p.step('part', 'fetch_part', { name: 'part 1', padding: 'x'.repeat(characters) });
    await p.approve('home', { view: {}, roles: ['boss'], expiresIn: '1h' });
    return { characters: text.length };
  },
);
