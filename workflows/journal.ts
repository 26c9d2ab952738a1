/**
 * A task's journal as it lives in workflow state (S3.6): its events, the state reduced from them, and how far the
 * audit has them. Plain JSON throughout, so that it crosses continue-as-new.
 *
 * The newest 200 events are kept here; older ones are in the audit.
 */
import { proxySinks } from '@temporalio/workflow';
import type { Sinks } from '@temporalio/workflow';
import type { AuditNote } from '../src/task/activity-api.ts';
import type { NewEvent, TaskEvent } from '../src/task/event.ts';
import { notesAfter } from '../src/task/notes.ts';
import { reduce } from '../src/task/reduce.ts';
import type { TaskState } from '../src/task/state.ts';
import { statusOf } from '../src/task/view.ts';

const EVENTS_KEPT = 200;

/** Change hints (architecture.md, idea 6): no history events, at least once, never the truth. */
export interface HintSinks extends Sinks {
  holdfastHints: { changed(taskId: string, seq: number, status: string): void };
}

export interface JournalSnapshot {
  state: TaskState;
  events: TaskEvent[];
  auditedSeq: number;
}

export class Journal {
  state: TaskState;
  events: TaskEvent[];
  private auditedSeq: number;
  private readonly hints = proxySinks<HintSinks>().holdfastHints;

  constructor(start: JournalSnapshot | Extract<NewEvent, { type: 'task_started' }>) {
    if ('state' in start) {
      ({ state: this.state, events: this.events, auditedSeq: this.auditedSeq } = start);
      return;
    }
    const first: TaskEvent = { v: 1, seq: 1, at: Date.now(), ...start };
    this.events = [first];
    this.state = reduce(null, first);
    this.auditedSeq = 0;
  }

  append(event: NewEvent): void {
    const whole = { v: 1, seq: this.state.seq + 1, at: Date.now(), ...event } as TaskEvent;
    this.state = reduce(this.state, whole);
    this.events = [...this.events, whole].slice(-EVENTS_KEPT);
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
    return { state: this.state, events: this.events, auditedSeq: this.auditedSeq };
  }
}
