/** The effect, as an activity without any protocol. */
import type { Booked, Booking } from '../effect.ts';
import { theTarget } from '../effect.ts';

export interface BareActivities {
  book(bookingId: string, booking: Booking): Promise<Booked>;
}

export const bareActivities: BareActivities = {
  book: (bookingId, booking) => Promise.resolve(theTarget().book(bookingId, booking)),
};
