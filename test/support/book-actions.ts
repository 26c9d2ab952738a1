/** Bookings in a book of its own that counts effects: actions for tests of procedures. */
import {
  ActionFailure,
  applied,
  defineAction,
  implementAction,
  notApplied,
  verified,
  mismatch,
} from '../../src/index.ts';
import { z } from 'zod';

/** What the world saw, in order; the oracle of "once". */
export interface Book {
  booked: Map<string, string>;
  /** `book NAME`, `cancel NAME` and `look NAME`, as they happened. */
  log: string[];
  /** Held back until it settles, by name; the cancelling of NAME by `cancel NAME`. */
  gates: Map<string, Promise<unknown>>;
  /** Called as soon as the booking of that name was asked for. */
  onAsked: (name: string) => void;
  /** How often the cancelling of that name still fails. */
  stuck: Map<string, number>;
}

export const newBook = (): Book => ({
  booked: new Map(),
  log: [],
  gates: new Map(),
  onAsked: () => undefined,
  stuck: new Map(),
});

let book = newBook();
export const useBook = (next: Book): Book => (book = next);

const promise = {
  version: 1,
  description: 'Books something.',
  input: z.object({ name: z.string(), fails: z.boolean().default(false) }),
  output: z.object({ id: z.string(), name: z.string() }),
  effect: 'conditional',
  rollback: { kind: 'inBand' },
  lookup: 'conclusive',
  deadlines: { attempt: '20s', verify: '2s' },
  retry: { maximumRetries: 2, initialInterval: '100ms', maximumInterval: '200ms' },
} as const;

const handlers = {
  async execute({ name, fails }: { name: string; fails: boolean }, { operationId }: { operationId: string }) {
    book.onAsked(name);
    await book.gates.get(name);
    if (fails) throw ActionFailure.permanent(`${name} is sold out`, 'sold_out');
    if (!book.booked.has(operationId)) book.log.push(`book ${name}`);
    book.booked.set(operationId, name);
    return { id: operationId, name };
  },
  lookup({ operationId }: { operationId: string }) {
    const name = book.booked.get(operationId);
    return Promise.resolve(name === undefined ? notApplied() : applied({ id: operationId, name }));
  },
  verify: (_input: unknown, { id }: { id: string }) =>
    Promise.resolve(book.booked.has(id) ? verified() : mismatch('it is not in the book')),
  async rollback(_input: unknown, { id, name }: { id: string; name: string }) {
    await book.gates.get(`cancel ${name}`);
    const left = book.stuck.get(name) ?? 0;
    if (left > 0) {
      book.stuck.set(name, left - 1);
      throw new Error(`${name} can not be cancelled just now`);
    }
    if (book.booked.delete(id)) book.log.push(`cancel ${name}`);
  },
};

const bookIt = defineAction({ ...promise, name: 'book' });
const bookExpensive = defineAction({
  ...promise,
  name: 'book_expensive',
  approval: () => ({ roles: ['boss'], expiresIn: '1h' }),
});

const look = defineAction({
  name: 'look',
  version: 1,
  description: 'Looks whether something is booked.',
  input: z.object({ name: z.string() }),
  output: z.object({ isBooked: z.boolean() }),
  effect: 'safe',
});

export const bookActions = [
  implementAction(bookIt, handlers),
  implementAction(bookExpensive, handlers),
  implementAction(look, {
    execute({ name }) {
      book.log.push(`look ${name}`);
      return Promise.resolve({ isBooked: [...book.booked.values()].includes(name) });
    },
  }),
] as const;
