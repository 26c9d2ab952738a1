/**
 * A procedure in the inbox of those who are waited for: there while any of its steps waits for a person, entered and left
 * once however many do.
 */
import type { TaskState } from '../src/task/state.ts';
import { enterInbox, leaveInbox } from './inbox.ts';
import type { Journal } from './journal.ts';

export class ProcedureInbox {
  /** Crosses continue-as-new. */
  isIn: boolean;
  readonly #journals: () => Iterable<Journal>;
  readonly #view: () => TaskState;

  constructor(isIn: boolean, journals: () => Iterable<Journal>, view: () => TaskState) {
    this.isIn = isIn;
    this.#journals = journals;
    this.#view = view;
  }

  readonly show = (journal: Journal, isWaiting: boolean): void => {
    journal.isInInbox = isWaiting;
    const isAnyWaiting = [...this.#journals()].some(({ isInInbox }) => isInInbox);
    if (!isAnyWaiting) return this.leave();
    if (this.isIn) return;
    enterInbox(this.#view());
    this.isIn = true;
  };

  leave(): void {
    if (this.isIn) leaveInbox();
    this.isIn = false;
  }
}
