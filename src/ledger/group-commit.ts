/**
 * Several transactions of one process as one of the database's: what was asked for in the same turn of the event loop is
 * made durable by one flush of the disk, instead of by one each. While a flush blocks, the next group gathers.
 *
 * Invariants:
 * 1. Each member is whole or absent: it runs in a savepoint of its own, after those before it and seeing them.
 * 2. No member is answered before the commit that holds them all. If that fails, none of them took place, or none is
 *    known to have; each is told so.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { SqliteTransaction, whileBusy } from './sqlite-connection.ts';
import type { SqliteConnection } from './sqlite-connection.ts';

/** Bounds how long the first of a group waits for the last. */
const GROUP_MAX = 64;

interface Member {
  run(transaction: SqliteTransaction): Promise<void>;
  /** What it came to; for the time after the commit. */
  settle(): void;
  fail(error: unknown): void;
}

interface GroupOptions {
  writer: SqliteConnection;
  commit: () => void;
  /** Runs one piece of work with the writer at a time. */
  exclusively: (work: () => Promise<void>) => Promise<void>;
}

export class GroupCommit {
  readonly #options: GroupOptions;
  #waiting: Member[] = [];

  constructor(options: GroupOptions) {
    this.#options = options;
  }

  /** Throws what `work` throws, its own changes undone; and what beginning or committing the group threw. */
  join<T>(work: (transaction: SqliteTransaction) => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      let settle = (): void => reject(new Error('a transaction that was never run'));
      this.#waiting.push({
        async run(transaction) {
          const answer = await work(transaction);
          settle = () => resolve(answer);
        },
        settle: () => settle(),
        fail: (error) => {
          settle = () => reject(error);
        },
      });
      if (this.#waiting.length === 1) this.#schedule();
    });
  }

  #schedule(): void {
    void this.#options.exclusively(async () => {
      await nextTurn(); // whoever is ready by then comes along
      const members = this.#waiting.splice(0, GROUP_MAX);
      if (this.#waiting.length > 0) this.#schedule();
      await this.#carryOut(members);
    });
  }

  async #carryOut(members: readonly Member[]): Promise<void> {
    const { writer, commit } = this.#options;
    try {
      await whileBusy(() => writer.run('begin immediate'));
      for (const member of members) await this.#runMember(member);
      commit();
    } catch (error) {
      for (const member of members) member.fail(error);
      writer.rollBack();
    } finally {
      for (const member of members) member.settle();
    }
  }

  /** Throws only when SQLite has rolled back the whole group by itself (a full disk). */
  async #runMember(member: Member): Promise<void> {
    const { writer } = this.#options;
    const transaction = new SqliteTransaction(writer);
    writer.run('savepoint member');
    try {
      await member.run(transaction);
    } catch (error) {
      if (!writer.inTransaction) throw error;
      writer.run('rollback to member');
      member.fail(error);
    } finally {
      transaction.isOver = true;
    }
    writer.run('release member');
  }
}
