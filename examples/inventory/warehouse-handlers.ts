/**
 * The deed in another service. Its books and our ledger can't commit together; what bridges them is the operationId
 * as `Idempotency-Key`, and a look-up by it whenever an answer got lost (S2.4).
 */
import {
  ActionFailure,
  applied,
  fails,
  holds,
  implementAction,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/index.ts';
import type { LookContext } from '../../src/index.ts';
import { getJson, postJson } from '../http-json.ts';
import { releaseWarehouseStock, reserveWarehouseStock } from './actions.ts';
import type { WarehouseReservation } from './service.ts';

const at = (path: string): string =>
  `${process.env['HOLDFAST_WAREHOUSE_URL'] ?? 'http://127.0.0.1:7411'}${path}`;

const byId = (reservationId: string, context: LookContext) =>
  getJson<WarehouseReservation>(at(`/reservations/${encodeURIComponent(reservationId)}`), context);
const byOperation = (operationId: string, context: LookContext) =>
  getJson<WarehouseReservation>(at(`/reservations?operationId=${encodeURIComponent(operationId)}`), context);

const reservation = ({ reservationId, sku, quantity }: WarehouseReservation) => ({
  reservationId,
  sku,
  quantity,
});

const isReleased = async (reservationId: string, wanted: boolean, context: LookContext) => {
  const look = await byId(reservationId, context);
  if (look.kind === 'unreadable') return notYet(look.reason);
  if (look.kind === 'absent') return mismatch(`the warehouse knows no reservation ${reservationId}`);
  return look.body.isReleased === wanted
    ? verified()
    : mismatch(`reservation ${reservationId} is ${wanted ? 'not given back' : 'given back'}`);
};

export const warehouseReservation = implementAction(reserveWarehouseStock, {
  async precondition({ sku, quantity }, context) {
    const look = await getJson<{ available: number }>(at(`/stock/${encodeURIComponent(sku)}`), context);
    if (look.kind === 'unreadable')
      throw ActionFailure.notSent(`the stock could not be read: ${look.reason}`);
    if (look.kind === 'absent') return fails(`the warehouse has no article ${sku}`);
    const { available } = look.body;
    return available < quantity
      ? fails(`${available} of ${sku} are left, ${quantity} were asked for`)
      : holds();
  },

  async execute(input, context) {
    return reservation(await postJson<WarehouseReservation>(at('/reservations'), input, context));
  },

  async lookup(context) {
    const look = await byOperation(context.operationId, context);
    if (look.kind === 'unreadable') return unknown(look.reason);
    return look.kind === 'found' ? applied(reservation(look.body)) : notApplied();
  },

  async verify({ sku, quantity }, { reservationId }, context) {
    const look = await byId(reservationId, context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    if (look.kind === 'absent') return mismatch(`the warehouse knows no reservation ${reservationId}`);
    const found = look.body;
    return found.sku === sku && found.quantity === quantity && !found.isReleased
      ? verified()
      : mismatch(
          `the warehouse holds ${found.quantity} of ${found.sku}, ${quantity} of ${sku} were asked for`,
        );
  },

  async rollback(_input, { reservationId }, context) {
    await postJson(at(`/reservations/${encodeURIComponent(reservationId)}/release`), {}, context);
  },

  verifyRollback: (_input, { reservationId }, context) => isReleased(reservationId, true, context),
});

export const warehouseRelease = implementAction(releaseWarehouseStock, {
  async precondition({ reservationId }, context) {
    const look = await byId(reservationId, context);
    if (look.kind === 'unreadable')
      throw ActionFailure.notSent(`the reservation could not be read: ${look.reason}`);
    if (look.kind === 'absent') return fails(`the warehouse knows no reservation ${reservationId}`);
    return look.body.isReleased ? fails(`${reservationId} was given back before`) : holds();
  },

  async execute({ reservationId }, context) {
    const path = `/reservations/${encodeURIComponent(reservationId)}/release`;
    return reservation(await postJson<WarehouseReservation>(at(path), {}, context));
  },

  /** "Given back" is a state: whoever brought it about, giving back again changes nothing. */
  async lookup(context) {
    const look = await byId(context.input.reservationId, context);
    if (look.kind === 'unreadable') return unknown(look.reason);
    return look.kind === 'found' && look.body.isReleased ? applied(reservation(look.body)) : notApplied();
  },

  verify: (_input, { reservationId }, context) => isReleased(reservationId, true, context),

  /** Reserves the same quantity anew, under the rollback's own operationId. */
  async rollback(_input, { sku, quantity }, context) {
    const anew = await postJson<WarehouseReservation>(at('/reservations'), { sku, quantity }, context);
    return { remains: `the reservation is now called ${anew.reservationId}` };
  },

  async verifyRollback(_input, { sku, quantity }, context) {
    const look = await byOperation(context.operationId, context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    return look.kind === 'found' && look.body.quantity === quantity
      ? verified()
      : mismatch(`no new reservation of ${quantity} of ${sku}`);
  },
});
