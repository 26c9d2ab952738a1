/** The promises: three reservations at a freight desk, and the booking that is all three or none. No I/O here. */
import { z } from 'zod';
import { defineAction, defineProcedure } from '../../src/index.ts';

const reference = z.string().min(1).max(64);
const cargo = z.string().min(1).max(64);
const weightKg = z.int().positive().max(100_000);

const promise = {
  version: 1,
  output: z.object({ id: z.string() }),
  effect: 'conditional',
  rollback: { kind: 'inBand' },
  deadlines: { attempt: '10s', verify: '30s', run: '1h' },
  retry: { initialInterval: '200ms', maximumInterval: '5s' },
  onCancel: 'rollback',
} as const;

/** Without a look-up: what can't be known is sent again under the same operationId, and the desk answers what it has. */
export const reserveFunds = defineAction({
  ...promise,
  name: 'reserve_funds',
  description: 'Puts money aside, in integer cents. Refused when less than that is left.',
  input: z.object({ amountCents: z.int().positive().max(10_000_000) }),
});

export const reserveSlot = defineAction({
  ...promise,
  name: 'reserve_slot',
  description: 'Reserves a slot on the ship for a cargo. Refused when the ship is full.',
  input: z.object({ cargo }),
});

export const bookCarrier = defineAction({
  ...promise,
  name: 'book_carrier',
  description: 'Books a carrier for a cargo that has funds and a slot. Refused when it is too heavy.',
  input: z.object({ cargo, weightKg, fundsId: reference, slotId: reference }),
});

export const bookCargo = defineProcedure({
  name: 'book_cargo',
  description:
    'Reserves funds, then a slot, then books the carrier for a cargo. When one of them is refused, or the call is cancelled, nothing stays reserved.',
  input: z.object({ cargo, weightKg }),
  run: '1d',
});
