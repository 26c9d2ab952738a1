/**
 * What the benchmark's workers run. The same booking, short enough to run inline and dispatched as an activity; one that
 * its target puts off for an hour, so that its task waits; and one that does nothing, to see what is around it.
 */
import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  ActionFailure,
  applied,
  defineAction,
  defineConfig,
  implementAction,
  mismatch,
  notApplied,
  verified,
} from '../src/index.ts';
import type { ActionDefinition } from '../src/contract/define-action.ts';
import { theTarget } from './effect.ts';

const input = z.object({ sku: z.string(), quantity: z.int().positive() });
const output = z.object({ bookingId: z.string(), sku: z.string(), quantity: z.int() });

const promised = {
  version: 1,
  description: 'Books a quantity of one article.',
  input,
  output,
  effect: 'conditional',
  rollback: { kind: 'outOfBand', reason: 'a benchmark undoes nothing' },
} satisfies Partial<ActionDefinition<typeof input, typeof output>>;

const bookInline = defineAction({
  ...promised,
  name: 'book_inline',
  deadlines: { attempt: '1s', verify: '1s' },
});
const bookDispatched = defineAction({ ...promised, name: 'book_dispatched', inline: false });
const bookLeased = defineAction({
  ...promised,
  name: 'book_leased',
  inline: false,
  // A resource of its own for each call, as where nobody else wants it.
  resource: () => `bench/${randomUUID()}`,
});
const bookLater = defineAction({
  ...promised,
  name: 'book_later',
  deadlines: { attempt: '1s', verify: '1s', run: '24h' },
});

const bookNothing = defineAction({
  ...promised,
  name: 'book_nothing',
  deadlines: { attempt: '1s', verify: '1s' },
});

const book = (contract: typeof bookInline | typeof bookDispatched | typeof bookLeased) =>
  implementAction(contract, {
    execute: (booking, { operationId }) => Promise.resolve(theTarget().book(operationId, booking)),
    lookup: ({ operationId }) => {
      const found = theTarget().find(operationId);
      return Promise.resolve(found ? applied({ bookingId: operationId, ...found }) : notApplied());
    },
    verify: ({ sku, quantity }, { bookingId }) => {
      const found = theTarget().find(bookingId);
      const isAsAsked = found?.sku === sku && found.quantity === quantity;
      return Promise.resolve(isAsAsked ? verified() : mismatch(`${bookingId} is not booked as asked`));
    },
  });

const HOUR_MS = 3_600_000;

const later = implementAction(bookLater, {
  execute: (_booking, _context) => Promise.reject(ActionFailure.rateLimited('not today', HOUR_MS)),
  lookup: () => Promise.resolve(notApplied()),
  verify: () => Promise.resolve(verified()),
});

const nothing = implementAction(bookNothing, {
  execute: (booking, { operationId }) => Promise.resolve({ bookingId: operationId, ...booking }),
  lookup: () => Promise.resolve(notApplied()),
  verify: () => Promise.resolve(verified()),
});

export default defineConfig({
  actions: [book(bookInline), book(bookDispatched), book(bookLeased), later, nothing],
});
