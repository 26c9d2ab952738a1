/** A procedure with two transfers at once that nobody can look up: workflow code, bundled into the worker. */
import { procedure } from 'holdfast/procedure';
import type { Action } from '../../../src/index.ts';

export const twoWires = procedure<readonly Action[]>('two_wires', async (p) => ({
  wired: await Promise.all(['a', 'b'].map((to) => p.step(to, 'wire', { to }))),
}));
