/** Transactions of one turn of the event loop share a commit, and nothing else. */
import Database from 'better-sqlite3';
import { beforeEach, describe, expect, test } from 'vitest';
import { GroupCommit } from '../../src/ledger/group-commit.ts';
import { SqliteConnection } from '../../src/ledger/sqlite-connection.ts';
import type { SqliteTransaction } from '../../src/ledger/sqlite-connection.ts';

class Recording extends SqliteConnection {
  readonly said: string[] = [];
  override run(sql: string, parameters: readonly unknown[] = []) {
    this.said.push(sql);
    return super.run(sql, parameters);
  }
}

let writer: Recording;
let group: GroupCommit;
let failsToCommit: Error | null;
beforeEach(() => {
  writer = new Recording(new Database(':memory:'));
  writer.run('create table word (text text primary key)');
  writer.said.length = 0;
  failsToCommit = null;
  let queue: Promise<unknown> = Promise.resolve();
  group = new GroupCommit({
    writer,
    commit: () => {
      if (failsToCommit) throw failsToCommit;
      writer.run('commit');
    },
    exclusively: (work) => {
      const turn = queue.then(work, work);
      queue = turn.catch(() => undefined);
      return turn;
    },
  });
});

const say = (text: string) => async (transaction: SqliteTransaction) => {
  transaction.run('insert into word values (?)', [text]);
  return text;
};
const words = () =>
  writer.run('select text from word order by text').rows.map((row) => (row as { text: string }).text);
const times = (sql: string) => writer.said.filter((said) => said === sql).length;

describe('transactions asked for in one turn', () => {
  test('[S2.8] share one commit, and see those before them', async () => {
    const count = async (transaction: SqliteTransaction) => transaction.run('select * from word').rows.length;
    const answers = await Promise.all([
      group.join(say('a')),
      group.join(count),
      group.join(say('b')),
      group.join(count),
    ]);
    expect(answers).toEqual(['a', 1, 'b', 2]);
    expect([times('begin immediate'), times('commit')]).toEqual([1, 1]);
  });

  test('[S2.8] one that fails takes back its own changes only, and is told its own error', async () => {
    const torn = async (transaction: SqliteTransaction) => {
      transaction.run('insert into word values (?)', ['half']);
      throw new Error('no');
    };
    const [first, failed, last] = await Promise.allSettled([
      group.join(say('a')),
      group.join(torn),
      group.join(say('b')),
    ]);
    expect([first.status, failed.status, last.status]).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(failed).toMatchObject({ reason: { message: 'no' } });
    expect(words()).toEqual(['a', 'b']);
  });

  test('[S2.8] are answered only after the commit that holds them', async () => {
    const committed: number[] = [];
    const note = () => committed.push(times('commit'));
    await Promise.all([group.join(say('a')).then(note), group.join(say('b')).then(note)]);
    expect(committed).toEqual([1, 1]);
  });

  test('[S2.8] when the commit fails nobody’s changes stay, and everybody is told', async () => {
    failsToCommit = new Error('disk');
    const settled = await Promise.allSettled([group.join(say('a')), group.join(say('b'))]);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(words()).toEqual([]);
    failsToCommit = null;
    expect(await group.join(say('c'))).toBe('c');
    expect(words()).toEqual(['c']);
  });

  test('[S2.8] the next turn’s get a commit of their own', async () => {
    await group.join(say('a'));
    await group.join(say('b'));
    expect(times('commit')).toBe(2);
  });

  test('[S2.8] more than one group takes go on in the next, in their order', async () => {
    const order: number[] = [];
    const asked = Array.from({ length: 150 }, (_, index) => group.join(async () => void order.push(index)));
    await Promise.all(asked);
    expect(order).toEqual(Array.from({ length: 150 }, (_, index) => index));
    expect(times('commit')).toBe(3);
  });
});
