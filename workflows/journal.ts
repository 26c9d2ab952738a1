/**
 * A task's journal as it lives in workflow state (S3.6): its events, the state reduced from them, and what the audit
 * does not have yet. Plain JSON throughout, so that it crosses continue-as-new.
 *
 * Invariants:
 * 1. The newest 200 events are kept; older ones are in the audit.
 * 2. A note stays pending until a ledger transaction has carried it. At most 1,000 are: beyond that the oldest of the
 *    kinds that repeat without end (losses, ignored messages and decisions) goes.
 * 3. What one activity or one continue-as-new is given of either is bounded, so that with an input of 1 MiB it stays
 *    below the engine's 2 MB.
 */
import { patched, proxySinks, workflowInfo } from '@temporalio/workflow';
import type { Sinks } from '@temporalio/workflow';
import type { AuditNote } from '../src/task/activity-api.ts';
import type { NewEvent, TaskEvent } from '../src/task/event.ts';
import { noteOf } from '../src/task/notes.ts';
import { reduce } from '../src/task/reduce.ts';
import type { TaskState } from '../src/task/state.ts';
import { upcastEvent, upcastState } from '../src/task/upcast.ts';
import { statusOf } from '../src/task/view.ts';
import { bytesOf } from './json-bytes.ts';

export const EVENTS_KEPT = 200;
const PENDING_MAX = 1_000;
export const CARRIED_BYTES_MAX = 256 * 1024;
const REPEATING = ['step_lost', 'message_ignored', 'decision_ignored'];

/** Change hints (architecture.md, idea 6): no history events, at least once, never the truth. */
export interface HintSinks extends Sinks {
  holdfastHints: { changed(taskId: string, seq: number, status: string): void };
}

export interface JournalSnapshot {
  state: TaskState;
  events: TaskEvent[];
  pending: AuditNote[];
  /** The inbox shows the task as waiting for a person. */
  isInInbox: boolean;
}

/** The procedure whose step a journal is of: it keeps the events, and tells of them (procedure-journal.ts). */
export interface JournalOwner {
  stepId: string;
  heard(event: TaskEvent): void;
}

export class Journal {
  state: TaskState;
  readonly events: TaskEvent[];
  isInInbox = false;
  private pending: AuditNote[] = [];
  private readonly owner: JournalOwner | null;
  private readonly hints = proxySinks<HintSinks>().holdfastHints;

  constructor(
    start: JournalSnapshot | Extract<NewEvent, { type: 'task_started' }>,
    owner: JournalOwner | null = null,
  ) {
    this.owner = owner;
    if ('state' in start) {
      this.state = upcastState(start.state);
      this.events = start.events.map(upcastEvent);
      ({ pending: this.pending, isInInbox: this.isInInbox } = start);
      return;
    }
    // A task starts when it was asked for, not when the first worker came by: its run deadline counts from then (S5.3).
    const at = owner === null ? workflowInfo().startTime.getTime() : Date.now();
    const first: TaskEvent = { v: 1, seq: 1, at, ...start };
    this.events = owner === null ? [first] : [];
    this.state = reduce(null, first);
    const note = noteOf(first);
    if (note !== null) this.await(note);
    owner?.heard(first);
  }

  append(event: NewEvent): void {
    const whole = { v: 1, seq: this.state.seq + 1, at: Date.now(), ...event } as TaskEvent;
    this.state = reduce(this.state, whole);
    const note = noteOf(whole);
    if (note !== null) this.await(note);
    if (this.owner !== null) {
      this.owner.heard(whole);
      return;
    }
    this.events.push(whole);
    if (this.events.length > EVENTS_KEPT) this.events.shift();
    this.hints.changed(this.state.taskId, whole.seq, this.hintedStatus());
  }

  /** An end is told once the ledger has all that led to it: who hears of it reads it there. */
  private hintedStatus(): string {
    return this.state.phase.kind === 'finished' && this.pendingCount > 0 ? 'running' : statusOf(this.state);
  }

  /** How many transitions no ledger transaction has carried yet. */
  get pendingCount(): number {
    return this.pending.length;
  }

  /** The oldest of them, as many as one activity may be given. */
  unaudited(): AuditNote[] {
    return this.pending.slice(0, countWithin(this.pending, CARRIED_BYTES_MAX));
  }

  /** A ledger transaction carried these. */
  audited(notes: readonly AuditNote[]): void {
    const carried = new Set(notes.map(({ data }) => data['seq']));
    this.pending = this.pending.filter(({ data }) => !carried.has(data['seq']));
  }

  snapshot(): JournalSnapshot {
    const { state, isInInbox } = this;
    const newest = this.events.toReversed();
    const events = newest.slice(0, countWithin(newest, CARRIED_BYTES_MAX)).toReversed();
    return { state, events, pending: this.unaudited(), isInInbox };
  }

  private await(note: AuditNote): void {
    const { owner } = this;
    this.pending.push(owner === null ? note : { ...note, data: { ...note.data, step: owner.stepId } });
    if (this.pending.length <= PENDING_MAX) return;
    const oldest = this.pending.findIndex(({ type }) => REPEATING.includes(type));
    this.pending.splice(Math.max(oldest, 0), 1);
  }
}

/** How many of the first entries fit; always one. Runs that counted characters go on as they began. */
export function countWithin(entries: readonly unknown[], bytesMax: number): number {
  const fitting = countBy(bytesOf, entries, bytesMax);
  if (fitting === entries.length) return fitting;
  const byCharacters = countBy((entry) => JSON.stringify(entry).length, entries, bytesMax);
  return fitting === byCharacters || patched('bytes-carried') ? fitting : byCharacters;
}

function countBy(sizeOf: (entry: unknown) => number, entries: readonly unknown[], max: number): number {
  let size = 0;
  const tooMany = entries.findIndex((entry) => (size += sizeOf(entry)) > max);
  return tooMany === -1 ? entries.length : Math.max(tooMany, 1);
}
