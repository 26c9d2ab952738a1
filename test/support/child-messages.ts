/** What a test and the processes it controls say to each other (child-process.ts). Plain JSON. */
import type { FaultPlace, FaultPoint } from '../../src/operation/faults.ts';

/** The operation's own points, and those outside of it. */
export type CrashPoint =
  | FaultPoint
  /** Inside the handler, between its claim and its first byte (stubborn actions alone). */
  | 'before_sending'
  /** The engine has the activity's outcome; the workflow has not gone on from it. */
  | 'after_activity'
  /** The gateway's answer is known and not sent. */
  | 'before_answer'
  /** The row is reserved and the workflow not started. */
  | 'after_reserve'
  /** A procedure is over, and its end is about to be recorded. */
  | 'before_end';

/** Where a process stops until it is killed or told to go on. */
export interface Stop {
  point: CrashPoint;
  /** Only this attempt; default every one. */
  attempt?: number;
  about?: FaultPlace['about'];
  /** Only for this operation; a rollback has one of its own. */
  operationId?: string;
}

/** A place a process has reached and is blocked at. */
export interface Reached {
  point: CrashPoint;
  taskId: string;
  operationId: string;
  attempt: number;
}

/** An attempt as the process that ran it saw it; `outcome` null at its beginning. */
export interface Ran {
  taskId: string;
  attempt: number;
  outcome: string | null;
}

export type Notice =
  | { notice: 'ready'; data: Record<string, string> }
  | { notice: 'ran'; ran: Ran }
  | { notice: 'reached'; place: Reached }
  | { notice: 'did'; order: number; error?: { code: string; message: string }; data?: unknown };

export type Order = {
  /** Answered by `did` with this number. */
  id: number;
} & (
  | { order: 'run'; taskQueue: string }
  | { order: 'stop'; taskQueue: string }
  /** Everything that is blocked, and whatever gets there later, goes on. */
  | { order: 'goOn' }
  | { order: 'start'; request: object }
);
