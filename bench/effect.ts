/**
 * The effect that every measured call has, with Holdfast or without: one booking, durable in the target's own database
 * (WAL, synchronous=FULL), deduplicated by the id it comes with. The target counts; nobody else's word is taken.
 */
import Database from 'better-sqlite3';

export interface Booking {
  sku: string;
  quantity: number;
}

export interface Booked extends Booking {
  bookingId: string;
}

export class Target {
  readonly #database: Database.Database;
  readonly #insert: Database.Statement;
  readonly #select: Database.Statement<[string], Booking>;

  constructor(path: string) {
    this.#database = new Database(path);
    this.#database.pragma('journal_mode = WAL');
    this.#database.pragma('synchronous = FULL');
    this.#database.exec(
      'create table if not exists booking (id text primary key, sku text not null, quantity integer not null) strict, without rowid',
    );
    this.#insert = this.#database.prepare('insert into booking values (?, ?, ?) on conflict do nothing');
    this.#select = this.#database.prepare('select sku, quantity from booking where id = ?');
  }

  book(bookingId: string, { sku, quantity }: Booking): Booked {
    this.#insert.run(bookingId, sku, quantity);
    return { bookingId, sku, quantity };
  }

  find(bookingId: string): Booking | undefined {
    return this.#select.get(bookingId);
  }

  count(): number {
    const { n } = this.#database.prepare('select count(*) as n from booking').get() as { n: number };
    return n;
  }

  close(): void {
    this.#database.close();
  }
}

let target: Target | null = null;

/** The target of this process; HOLDFAST_BENCH_TARGET names its file. */
export function theTarget(): Target {
  const path = process.env['HOLDFAST_BENCH_TARGET'];
  if (path === undefined) throw new Error('HOLDFAST_BENCH_TARGET names no file');
  return (target ??= new Target(path));
}
