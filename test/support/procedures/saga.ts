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
