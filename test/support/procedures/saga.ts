// Workflow code of the tests: bundled into the worker, never imported by a test but for its types.
import { StepFailed, procedure } from 'holdfast/procedure';
import type { bookActions } from '../book-actions.ts';

type Actions = typeof bookActions;

/** Three bookings one after the other. */
export const trip = procedure<Actions, { fail?: string[] }>('trip', async (p, { fail = [] }) => {
  const how = (name: string) => ({ name, fails: fail.includes(name) });
  const flight = await p.step('flight', 'book', how('flight'));
  const hotel = await p.step('hotel', 'book', how('hotel'));
  const car = await p.step('car', 'book', how('car'));
  return { bookings: [flight.id, hotel.id, car.id] };
});

/** The same at once. */
export const parallelTrip = procedure<Actions, { fail?: string[] }>(
  'parallel_trip',
  async (p, { fail = [] }) => {
    const booked = await Promise.all(
      ['flight', 'hotel', 'car'].map((name) => p.step(name, 'book', { name, fails: fail.includes(name) })),
    );
    return { bookings: booked.map(({ id }) => id) };
  },
);

/** Two words of people at once, and nothing else. */
export const twoWords = procedure<Actions>('two_words', async (p) => {
  await Promise.all(
    ['budget', 'date'].map((name) =>
      p.approve(name, { view: { asks: name }, mayAnswerOverMcp: name === 'date' }),
    ),
  );
  return 'both were given';
});

/** Goes on without what a person rejected. */
export const optionalHotel = procedure<Actions>('optional_hotel', async (p) => {
  await p.step('flight', 'book', { name: 'flight' });
  try {
    await p.step('hotel', 'book_expensive', { name: 'hotel' });
  } catch (error) {
    if (!(error instanceof StepFailed) || error.cause !== 'approval_rejected') throw error;
    return { hotel: error.cause };
  }
  return { hotel: 'booked' };
});

/** A hotel that a person is asked about, then a car that is sold out. */
export const hotelThenCar = procedure<Actions>('hotel_then_car', async (p) => {
  await p.step('hotel', 'book_expensive', { name: 'hotel' });
  await p.step('car', 'book', { name: 'car', fails: true });
});

/** As many bookings one after the other as asked for, then a person, then one that may fail. */
export const tour = procedure<Actions, { stops: number; fail?: boolean }>(
  'tour',
  async (p, { stops, fail }) => {
    for (let stop = 1; stop <= stops; stop += 1) {
      await p.step('stop', 'book', { name: `stop ${stop}` });
      await p.sleep('50ms');
    }
    await p.approve('home', { view: { stops }, roles: ['boss'], onExpiry: 'remind', expiresIn: '1h' });
    await p.step('last', 'book', { name: 'last', fails: fail === true });
    return { stops };
  },
);

/** Steps without an effect, one after the other. */
export const survey = procedure<Actions, { looks: number }>('survey', async (p, { looks }) => {
  let booked = 0;
  for (let look = 1; look <= looks; look += 1) {
    const { isBooked } = await p.step('look', 'look', { name: `place ${look}` });
    if (isBooked) booked += 1;
  }
  return { looks, booked };
});

/** A person is asked, then steps without an effect, then a person again. */
export const askedSurvey = procedure<Actions, { looks: number }>('asked_survey', async (p, { looks }) => {
  await p.approve('go', { view: { looks }, roles: ['boss'] });
  for (let look = 1; look <= looks; look += 1) await p.step('look', 'look', { name: `place ${look}` });
  await p.approve('home', { view: { looks }, roles: ['boss'] });
  return { looks };
});

/** Both at once, and whichever comes first again and again. */
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

/** The first turn books, the others only wait. */
export const longPatrol = procedure<Actions, { left: number; booked?: boolean }>(
  'long_patrol',
  async (p, { left, booked }) => {
    if (booked !== true) await p.step('post', 'book', { name: 'post' });
    for (let round = 0; round < 10; round += 1) await p.sleep('2h');
    if (left > 0) return p.restart({ left: left - 1, booked: true });
    throw new Error('the patrol is over');
  },
);

/** A part that fails is undone by itself, and the rest goes on. */
export const withChild = procedure<Actions, { fail: boolean }>('with_child', async (p, { fail }) => {
  await p.step('flight', 'book', { name: 'flight' });
  try {
    const part = await p.child('part', trip, fail ? { fail: ['car'] } : {});
    return { part };
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    await p.step('train', 'book', { name: 'train' });
    return { failed: error.step, cause: error.cause };
  }
});

/** As many parts at once as named, each of bookings at once; what fails in one undoes that, and then the rest. */
export const parts = procedure<Actions, { names: string[]; unawaited?: boolean }>(
  'parts',
  async (p, { names, unawaited }) => {
    const all = Promise.all(names.map((name) => p.child(name, part, { name })));
    if (unawaited !== true) await all;
    all.catch(() => undefined);
    return { isAwaited: unawaited !== true };
  },
);

/** A room, and beside it a car that is sold out. */
const part = procedure<Actions, { name: string }>('part', async (p, { name }) => {
  await Promise.all([
    p.step('room', 'book', { name: `${name} room` }),
    p.step('car', 'book', { name: `${name} car`, fails: true }),
  ]);
});

/** A long part, which fails and is undone by itself; then a train. */
export const longPart = procedure<Actions, { stops: number }>('long_part', async (p, { stops }) => {
  const failed = await p.child('part', failingTour, { stops }).then(
    () => false,
    () => true,
  );
  await p.step('train', 'book', { name: 'train' });
  return { failed };
});

const failingTour = procedure<Actions, { stops: number }>('failing_tour', async (p, { stops }) => {
  for (let stop = 1; stop <= stops; stop += 1) await p.step('stop', 'book', { name: `stop ${stop}` });
  await p.step('last', 'book', { name: 'last', fails: true });
});

/** A person is asked half way; what nobody answers in time waits for somebody who looks into it. */
export const haltedTrip = procedure<Actions>('halted_trip', async (p) => {
  await p.step('flight', 'book', { name: 'flight' });
  await p.approve('go', { view: { to: 'sea' }, roles: ['boss'], onExpiry: 'halt', expiresIn: '1h' });
  return p.step('car', 'book', { name: 'car' });
});
