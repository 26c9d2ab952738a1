/** Actions on a printer that one task at a time may use, and that counts who is at it. */
import { z } from 'zod';
import { defineAction, implementAction, notApplied, verified } from '../../src/contract/index.ts';
import type { ExecuteContext } from '../../src/contract/index.ts';

/** What the printer saw: who was at it, from when to when, under which fence. */
interface Job {
  page: string;
  printer: string;
  fence: number;
  began: number;
  ended: number | null;
}
export const jobs: Job[] = [];
/** A page waits for its own before it is done. */
export const gates = new Map<string, Promise<void>>();
/** Fences of what was undone. */
export const undone: number[] = [];

async function print(
  { printer, page }: { printer: string; page: string },
  { lease }: ExecuteContext,
): Promise<{ page: string }> {
  const job: Job = { page, printer, fence: lease?.fence ?? 0, began: jobs.length, ended: null };
  jobs.push(job);
  const running = jobs.filter((other) => other.printer === printer && other.ended === null);
  if (running.length > 1) throw new Error(`two at ${printer} at once`);
  await (gates.get(page) ?? new Promise((resolve) => setImmediate(resolve)));
  job.ended = jobs.length;
  return { page };
}

const shape = {
  version: 1,
  description: 'Prints a page.',
  input: z.object({ printer: z.string(), page: z.string() }),
  output: z.object({ page: z.string() }),
  effect: 'conditional',
  verify: { none: 'the test looks itself' },
  deadlines: { attempt: '2m', verify: '0s' },
  resource: ({ printer }: { printer: string }) => `printer/${printer}`,
} as const;

export const printKept = implementAction(
  defineAction({ ...shape, name: 'print_kept', rollback: { kind: 'outOfBand' } }),
  { execute: print, lookup: () => Promise.resolve(notApplied()) },
);
export const printUndoable = implementAction(
  defineAction({ ...shape, name: 'print_undoable', rollback: { kind: 'inBand' }, onCancel: 'rollback' }),
  {
    execute: print,
    rollback: (_input, _result, { lease }) => Promise.resolve(void undone.push(lease?.fence ?? 0)),
    verifyRollback: () => Promise.resolve(verified()),
  },
);
