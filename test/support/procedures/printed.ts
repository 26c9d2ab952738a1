/** A procedure whose steps want the same resource at once: workflow code, bundled into the worker. */
import { procedure } from 'holdfast/procedure';
import type { printKept } from '../print-actions.ts';

export const printPages = procedure<readonly [typeof printKept], { printer: string }>(
  'print_pages',
  async (p, { printer }) => {
    const page = (name: string) => p.step(name, 'print_kept', { printer, page: name });
    await Promise.all([page('left'), page('right')]);
    return null;
  },
);
