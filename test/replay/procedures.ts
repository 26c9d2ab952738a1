// The procedures whose histories are recorded: workflow code, bundled into the worker that records and replays them.
// Frozen: recorded histories hold what this code asked for, in its order, so a change here breaks them as a user's change
// of deployed code would. A new path gets a procedure of its own; those here stay as they are.
import { StepFailed, procedure } from 'holdfast/procedure';
import type { Action } from '../../src/index.ts';

/** Independent of any contract's types, which may change. */
type Actions = readonly Action[];

export const trip = procedure<Actions, { fail?: string[] }>('trip', async (p, { fail = [] }) => {
  await p.step('flight', 'book', { name: 'flight', fails: fail.includes('flight') });
  await p.step('hotel', 'book', { name: 'hotel', fails: fail.includes('hotel') });
  return p.step('car', 'book', { name: 'car', fails: fail.includes('car') });
});

export const parallelTrip = procedure<Actions, { fail?: string[] }>(
  'parallel_trip',
  async (p, { fail = [] }) => {
    const booked = await Promise.all(
      ['flight', 'hotel', 'car'].map((name) => p.step(name, 'book', { name, fails: fail.includes(name) })),
    );
    return { bookings: booked.length };
  },
);

/** Goes on without what a person rejected. */
export const askedTrip = procedure<Actions>('asked_trip', async (p) => {
  await p.step('flight', 'book', { name: 'flight' });
  try {
    await p.step('hotel', 'book_expensive', { name: 'hotel' });
  } catch (error) {
    if (!(error instanceof StepFailed) || error.cause !== 'approval_rejected') throw error;
    return { hotel: error.cause };
  }
  return { hotel: 'booked' };
});

export const tour = procedure<Actions, { stops: number; fail?: boolean }>(
  'tour',
  async (p, { stops, fail }) => {
    for (let stop = 1; stop <= stops; stop += 1) {
      await p.step('stop', 'book', { name: `stop ${stop}` });
      await p.sleep('50ms');
    }
    await p.approve('home', { view: { stops }, roles: ['boss'], onExpiry: 'deny', expiresIn: '1h' });
    await p.step('last', 'book', { name: 'last', fails: fail === true });
    return { stops };
  },
);

export const race = procedure<Actions, { turns: number }>('race', async (p, { turns }) => {
  const order: string[] = [];
  for (let turn = 1; turn <= turns; turn += 1) {
    const slow = p.step('slow', 'book', { name: `slow ${turn}` }).then(() => 'slow');
    const quick = p.sleep('1ms').then(() => 'quick');
    order.push(await Promise.race([slow, quick]));
    await slow;
  }
  return { order };
});

export const withChild = procedure<Actions, { fail: boolean }>('with_child', async (p, { fail }) => {
  await p.step('flight', 'book', { name: 'flight' });
  try {
    return { part: await p.child('part', trip, fail ? { fail: ['car'] } : {}) };
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    await p.step('train', 'book', { name: 'train' });
    return { failed: error.step, cause: error.cause };
  }
});

export const chosenTrip = procedure<Actions>('chosen_trip', async (p) => {
  const { name } = (await p.decide('choice', 'choose', {})) as { name: string };
  return p.step('booking', 'book', { name });
});

/** Goes on without a decision that its budget is spent on. */
export const undecidedTrip = procedure<Actions>('undecided_trip', async (p) => {
  const { name } = await p.decide('choice', 'hesitate', {}).then(
    (chosen) => chosen as { name: string },
    (error: unknown) => ({ name: error instanceof StepFailed ? error.cause : 'whatever' }),
  );
  return p.step('booking', 'book', { name });
});

/** The first turn books, the others only wait. */
export const patrol = procedure<Actions, { left: number; booked?: boolean }>(
  'patrol',
  async (p, { left, booked }) => {
    if (booked !== true) await p.step('post', 'book', { name: 'post' });
    await p.sleep('20ms');
    if (left > 0) return p.restart({ left: left - 1, booked: true });
    throw new Error('the patrol is over');
  },
);

/** Waits longer than its contract lets it run. */
export const lateTrip = procedure<Actions>('late_trip', async (p) => {
  await p.step('flight', 'book', { name: 'flight' });
  await p.sleep('1h');
  return p.step('hotel', 'book', { name: 'hotel' });
});

/** Takes longer than its contract says that it should. */
export const slowTrip = procedure<Actions>('slow_trip', async (p) => {
  await p.sleep('500ms');
  return p.step('flight', 'book', { name: 'flight' });
});
