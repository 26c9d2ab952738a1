/**
 * How much is measured. Ratios settle with the number of samples; a busy machine takes fewer of them, so that a quick run
 * stays under two minutes there too.
 */
import type { Rounds, Turns } from './pairs.ts';

export interface Size {
  /** Before anything is measured: until code is compiled and caches are warm. */
  warmUp: Turns;
  turns: Turns;
  rounds: Rounds;
  /** Where client and worker are separate processes. */
  separate: Turns;
  ledger: Turns;
  reads: Turns;
  tools: Turns;
  waitingTasks: number[];
  /** Calls over which memory must not grow; 0: not measured. */
  longRunCalls: number;
}

export const FULL: Size = {
  warmUp: { turns: 200, seconds: 60 },
  turns: { turns: 400, seconds: 180 },
  rounds: { rounds: 9, calls: 300, concurrency: 50, seconds: 600 },
  separate: { turns: 200, seconds: 90 },
  ledger: { turns: 300, seconds: 60 },
  reads: { turns: 1_000, seconds: 60 },
  tools: { turns: 200, seconds: 60 },
  waitingTasks: [1_000, 10_000],
  longRunCalls: 20_000,
};

export const QUICK: Size = {
  warmUp: { turns: 50, seconds: 6 },
  turns: { turns: 70, seconds: 12 },
  rounds: { rounds: 3, calls: 70, concurrency: 50, seconds: 15 },
  separate: { turns: 40, seconds: 8 },
  ledger: { turns: 60, seconds: 4 },
  reads: { turns: 100, seconds: 4 },
  tools: { turns: 40, seconds: 4 },
  waitingTasks: [],
  longRunCalls: 0,
};

/** The same, a quarter as long. */
export const shorter = ({ turns, seconds }: Turns): Turns => ({
  turns: Math.ceil(turns / 4),
  seconds: seconds / 4,
});
