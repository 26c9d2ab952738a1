/**
 * A task's journal as it lives in workflow state (S3.6): its events, the state reduced from them, and how far the
 * audit has them. Plain JSON throughout, so that it crosses continue-as-new.
 *
 * Invariants:
 * 1. The newest 200 events are kept; older ones are in the audit.
 * 2. A note that the audit does not have yet is kept beyond them (at most 200; `step_lost`, which repeats, goes first).
 * 3. A snapshot's events hold at most 512 KiB, so that with an input of 1 MiB it fits the engine's 2 MB.
 */
import { proxySinks, workflowInfo } from '@temporalio/workflow';
import type { Sinks } from '@temporalio/workflow';
import type { AuditNote } from '../src/task/activity-api.ts';
import type { NewEvent, TaskEvent } from '../src/task/event.ts';
import { notesAfter } from '../src/task/notes.ts';
import { reduce } from '../src/task/reduce.ts';
import type { TaskState } from '../src/task/state.ts';
import { upcastEvent, upcastState } from '../src/task/upcast.ts';
import { statusOf } from '../src/task/view.ts';

const EVENTS_KEPT = 200;
const OLDER_NOTES_KEPT = 200;
const SNAPSHOT_EVENT_CHARS_MAX = 512 * 1024;

/** Change hints (architecture.md, idea 6): no history events, at least once, never the truth. */
export interface HintSinks extends Sinks {
  holdfastHints: { changed(taskId: string, seq: number, status: string): void };
}

export interface JournalSnapshot {
  state: TaskState;
  events: TaskEvent[];
  auditedSeq: number;
  /** The inbox shows the task as waiting for a person. */
  isInInbox: boolean;
}

export class Journal {
  state: TaskState;
  events: TaskEvent[];
  isInInbox = false;
  private auditedSeq = 0;
  private readonly hints = proxySinks<HintSinks>().holdfastHints;

  constructor(start: JournalSnapshot | Extract<NewEvent, { type: 'task_started' }>) {
    if ('state' in start) {
      this.state = upcastState(start.state);
      this.events = start.events.map(upcastEvent);
      ({ auditedSeq: this.auditedSeq, isInInbox: this.isInInbox } = start);
      return;
    }
    // A task starts when it was asked for, not when the first worker came by: its run deadline counts from then (S5.3).
    const first: TaskEvent = { v: 1, seq: 1, at: workflowInfo().startTime.getTime(), ...start };
    this.events = [first];
    this.state = reduce(null, first);
  }

  append(event: NewEvent): void {
    const whole = { v: 1, seq: this.state.seq + 1, at: Date.now(), ...event } as TaskEvent;
    this.state = reduce(this.state, whole);
    this.events = this.kept([...this.events, whole]);
    this.hints.changed(this.state.taskId, whole.seq, statusOf(this.state));
  }

  /** Transitions that no ledger transaction has carried yet. */
  unaudited(): AuditNote[] {
    return notesAfter(this.events, this.auditedSeq);
  }

  /** A ledger transaction carried every note up to `seq`. */
  audited(seq: number): void {
    this.auditedSeq = Math.max(this.auditedSeq, seq);
  }

  snapshot(): JournalSnapshot {
    const { state, auditedSeq, isInInbox } = this;
    return { state, events: newestWithin(this.events, SNAPSHOT_EVENT_CHARS_MAX), auditedSeq, isInInbox };
  }

  private kept(events: TaskEvent[]): TaskEvent[] {
    if (events.length <= EVENTS_KEPT) return events;
    const older = events.slice(0, -EVENTS_KEPT).filter((event) => event.type !== 'step_lost');
    const unauditedSeqs = new Set(notesAfter(older, this.auditedSeq).map((note) => note.data['seq']));
    const notes = older.filter((event) => unauditedSeqs.has(event.seq)).slice(-OLDER_NOTES_KEPT);
    return [...notes, ...events.slice(-EVENTS_KEPT)];
  }
}

function newestWithin(events: TaskEvent[], charsMax: number): TaskEvent[] {
  let chars = 0;
  const firstTooOld = events.findLastIndex((event) => (chars += JSON.stringify(event).length) > charsMax);
  return events.slice(firstTooOld + 1);
}
