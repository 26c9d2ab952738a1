// Workflow code, bundled into the worker: it is replayed, so of the actions it knows the types alone.
import { procedure } from '../../src/procedure/index.ts';
import type { actions } from './handlers.ts';

const CENTS_PER_KG = 12;

/** Whatever fails, what came before it is undone by its own contract, newest first: no line here says so. */
export const bookCargo = procedure<typeof actions, { cargo: string; weightKg: number }>(
  'book_cargo',
  async (p, { cargo, weightKg }) => {
    const amountCents = weightKg * CENTS_PER_KG;
    const funds = await p.step('funds', 'reserve_funds', { amountCents });
    const slot = await p.step('slot', 'reserve_slot', { cargo });
    const carrier = await p.step('carrier', 'book_carrier', {
      cargo,
      weightKg,
      fundsId: funds.id,
      slotId: slot.id,
    });
    return { cargo, amountCents, funds: funds.id, slot: slot.id, carrier: carrier.id };
  },
);
