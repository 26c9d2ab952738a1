/** The procedure that a rehearsal is tested with: workflow code, bundled into the worker. */
import { procedure } from 'holdfast/procedure';
import type { Action } from '../../../src/index.ts';

/** Funds, then slot, then carrier; undone in reverse when one of them is refused. */
export const ship = procedure<readonly Action[], { order: string }>('ship', async (p, { order }) => {
  await p.step('funds', 'hold_funds', { order });
  await p.step('slot', 'hold_slot', { order });
  return p.step('carrier', 'book_carrier', { order });
});

/** Somebody signs before the carrier is booked. */
export const shipSigned = procedure<readonly Action[], { order: string }>(
  'ship_signed',
  async (p, { order }) => {
    await p.step('funds', 'hold_funds', { order });
    await p.step('slot', 'hold_slot', { order });
    await p.approve('sign', { view: { order }, roles: ['signer'], expiresIn: '30d' });
    return p.step('carrier', 'book_carrier', { order });
  },
);

/** Takes a refusal for consent. */
export const shipAnyway = procedure<readonly Action[], { order: string }>(
  'ship_anyway',
  async (p, { order }) => {
    await p.step('funds', 'hold_funds', { order });
    await p.approve('sign', { view: { order }, roles: ['signer'], expiresIn: '30d' }).catch(() => undefined);
    return p.step('carrier', 'book_carrier', { order });
  },
);

/** Names its order by the clock: run anew over what is on record it asks for another. */
export const shipByClock = procedure<readonly Action[], { order: string }>(
  'ship_by_clock',
  async (p, { order }) => {
    const dated = `${order} of ${Date.now()}`;
    await p.step('funds', 'hold_funds', { order: dated });
    await p.step('slot', 'hold_slot', { order: dated });
    return p.step('carrier', 'book_carrier', { order: dated });
  },
);
