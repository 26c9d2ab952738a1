/**
 * A freight desk that keeps three books, reached over HTTP: money put aside, slots on a ship, carriers booked.
 *
 *   POST /funds              {amountCents} → 201 Entry; same Idempotency-Key: the earlier one, 200
 *   POST /slots              {cargo} → the same
 *   POST /carriers           {cargo, weightKg, fundsId, slotId} → the same; 422 when it is too heavy
 *   GET  /:book?operationId= status look-up: 200 Entry | 404
 *   GET  /:book              200 {entries}, all of them
 *   GET  /:book/:id          200 Entry | 404
 *   POST /:book/:id/release  gives it back → 200; again: 200; 409 while a booking stands on it
 *
 * Run it: `npx node examples/cargo/service.ts [port]` (default 7417). How to make it misbehave: ../service-kit.ts.
 */
import { fileURLToPath } from 'node:url';
import { startService } from '../service-kit.ts';
import type { Call, Deed, Reply, Service } from '../service-kit.ts';

export type BookName = 'funds' | 'slots' | 'carriers';
export type Asked = Record<string, string | number>;

export interface Entry {
  id: string;
  operationId: string;
  /** As it is in the book, whatever was asked for. */
  asked: Asked;
  isReleased: boolean;
}

export interface FreightBooks {
  /** What happened, in order: `reserve funds`, `release slot`, …; the oracle of "once, and in which order". */
  log: string[];
  /** How often an operation that was known already was answered with what it had before. */
  repeats: number;
  /** What stands now. */
  funds: number;
  slots: number;
  carriers: number;
  centsLeft: number;
}

export type FreightDesk = Service<FreightBooks>;

/** What no carrier takes: refused for good, with 422. */
export const WEIGHT_KG_MAX = 20_000;
const CENTS = 10_000_000;
const SLOTS = 100;

const WORDS = {
  funds: { prefix: 'fd', made: 'reserve funds', undone: 'release funds' },
  slots: { prefix: 'sl', made: 'reserve slot', undone: 'release slot' },
  carriers: { prefix: 'ca', made: 'book carrier', undone: 'cancel carrier' },
} as const;

export function startFreightDesk(port = 0): Promise<FreightDesk> {
  const books = new Books();
  const route = (call: Call): Reply | Deed => {
    const [name, id, action] = call.path;
    if (name !== 'funds' && name !== 'slots' && name !== 'carriers') return refused(404, 'no such book');
    if (call.method === 'POST' && id === undefined) return books.reserve(name, call);
    const entries = books.entries[name];
    const operationId = call.query.get('operationId');
    if (id === undefined && operationId === null) return { status: 200, body: { entries } };
    const found = entries.find((entry) => (id ? entry.id === id : entry.operationId === operationId));
    if (!found) return refused(404, `nothing of that name in ${name}`);
    const isRelease = call.method === 'POST' && action === 'release';
    return isRelease ? books.release(name, found) : { status: 200, body: found };
  };
  return startService({ route, books: () => books.counted() }, port);
}

class Books {
  readonly entries: Record<BookName, Entry[]> = { funds: [], slots: [], carriers: [] };
  readonly #log: string[] = [];
  #repeats = 0;

  reserve(book: BookName, { body, idempotencyKey }: Call): Reply | Deed {
    if (idempotencyKey === null) return refused(400, 'Idempotency-Key is missing');
    const entries = this.entries[book];
    const earlier = entries.find(({ operationId }) => operationId === idempotencyKey);
    if (earlier) {
      this.#repeats += 1;
      return { status: 200, body: earlier };
    }
    const asked = body as Asked;
    const refusing = this.#refusal(book, asked);
    if (refusing) return refusing;
    const { prefix, made } = WORDS[book];
    const wanted = { id: `${prefix}_0`, operationId: idempotencyKey, asked, isReleased: false };
    const apply = (wrong: boolean): Reply => {
      const entry = { ...wanted, id: `${prefix}_${entries.length + 1}` };
      entries.push(wrong ? { ...entry, asked: mistaken(asked) } : entry);
      this.#log.push(made);
      return { status: 201, body: entry };
    };
    return { apply, lie: wanted };
  }

  release(book: BookName, found: Entry): Reply | Deed {
    const isHeld = this.#standing('carriers').some(({ asked: { fundsId, slotId } }) =>
      [fundsId, slotId].includes(found.id),
    );
    if (isHeld) return refused(409, `a carrier is booked on ${found.id}`);
    const apply = (): Reply => {
      if (!found.isReleased) this.#log.push(WORDS[book].undone);
      found.isReleased = true;
      return { status: 200, body: found };
    };
    return { apply, lie: { ...found, isReleased: true } };
  }

  counted(): FreightBooks {
    return {
      log: [...this.#log],
      repeats: this.#repeats,
      funds: this.#standing('funds').length,
      slots: this.#standing('slots').length,
      carriers: this.#standing('carriers').length,
      centsLeft: this.#centsLeft(),
    };
  }

  #refusal(book: BookName, { amountCents = 0, weightKg = 0, fundsId, slotId }: Asked): Reply | null {
    switch (book) {
      case 'funds': {
        const left = this.#centsLeft();
        return Number(amountCents) > left ? refused(409, `${left} cents are left`) : null;
      }
      case 'slots':
        return this.#standing('slots').length >= SLOTS ? refused(409, 'the ship is full') : null;
      case 'carriers': {
        if (Number(weightKg) > WEIGHT_KG_MAX)
          return refused(422, `no carrier takes more than ${WEIGHT_KG_MAX} kg`);
        const stands = (among: BookName, wanted: unknown): boolean =>
          this.#standing(among).some(({ id }) => id === wanted);
        const isFounded = stands('funds', fundsId) && stands('slots', slotId);
        return isFounded ? null : refused(409, 'there are no such funds, or no such slot');
      }
      default:
        return book satisfies never;
    }
  }

  #standing(book: BookName): Entry[] {
    return this.entries[book].filter(({ isReleased }) => !isReleased);
  }

  #centsLeft(): number {
    return this.#standing('funds').reduce((left, { asked }) => left - Number(asked['amountCents']), CENTS);
  }
}

/** Something else than asked for, of the same shape. */
function mistaken(asked: Asked): Asked {
  return Object.fromEntries(
    Object.entries(asked).map(([name, value]) => [
      name,
      typeof value === 'number' ? value + 1 : `not ${value}`,
    ]),
  );
}

function refused(status: number, error: string): Reply {
  return { status, body: { error } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startFreightDesk(Number(process.argv[2] ?? 7417));
  console.log(`freight desk listens on ${url}`);
}
