/** What one would write without Holdfast: the effect in one activity, nothing around it. */
import {
  condition,
  defineQuery,
  proxyActivities,
  proxyLocalActivities,
  setHandler,
} from '@temporalio/workflow';
import type { Booked, Booking } from '../effect.ts';
import type { BareActivities } from './activities.ts';

const TIMEOUTS = { startToCloseTimeout: '10s' } as const;
const activities = proxyActivities<BareActivities>(TIMEOUTS);
const localActivities = proxyLocalActivities<BareActivities>(TIMEOUTS);

const progressQuery = defineQuery<{ status: string; sku: string }>('progress');

export async function bareActivity(bookingId: string, booking: Booking): Promise<Booked> {
  return activities.book(bookingId, booking);
}

export async function bareLocalActivity(bookingId: string, booking: Booking): Promise<Booked> {
  return localActivities.book(bookingId, booking);
}

/** Answers `progress` until it is terminated. */
export async function bareWaiting(booking: Booking): Promise<void> {
  setHandler(progressQuery, () => ({ status: 'working', sku: booking.sku }));
  await condition(() => false);
}
