/**
 * The deeds: each one POST under the operationId, read back with a GET, and given back with a POST that may come twice.
 * What the three have in common is the desk's way of keeping books.
 */
import {
  applied,
  implementAction,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/index.ts';
import type { ExecuteContext, LookContext } from '../../src/index.ts';
import { getJson, postJson } from '../http-json.ts';
import { bookCarrier, reserveFunds, reserveSlot } from './actions.ts';
import type { Asked, BookName, Entry } from './service.ts';

const at = (path: string): string =>
  `${process.env['HOLDFAST_FREIGHT_URL'] ?? 'http://127.0.0.1:7417'}/${path}`;

/** Everything but the look-up, for any of the desk's books. */
function entryIn(book: BookName) {
  const path = (id: string): string => at(`${book}/${encodeURIComponent(id)}`);
  const entriesOf = async (operationId: string): Promise<Entry[]> => {
    const { entries } = (await (await fetch(at(book))).json()) as { entries: Entry[] };
    return entries.filter((entry) => entry.operationId === operationId);
  };
  return {
    async execute(input: Asked, context: ExecuteContext) {
      const { id } = await postJson<Entry>(at(book), input, context);
      return { id };
    },

    async verify(input: Asked, { id }: { id: string }, context: LookContext) {
      const look = await getJson<Entry>(path(id), context);
      if (look.kind === 'unreadable') return notYet(look.reason);
      if (look.kind === 'absent') return mismatch(`there is no ${id} in ${book}`);
      const { asked, isReleased } = look.body;
      const isAsAsked = Object.entries(input).every(([name, value]) => asked[name] === value);
      return isAsAsked && !isReleased ? verified() : mismatch(`${id} is not in ${book} as asked for`);
    },

    async rollback(_input: Asked, { id }: { id: string }, context: ExecuteContext) {
      await postJson(`${path(id)}/release`, {}, context);
    },

    async verifyRollback(_input: Asked, { id }: { id: string }, context: LookContext) {
      const look = await getJson<Entry>(path(id), context);
      if (look.kind === 'unreadable') return notYet(look.reason);
      return look.kind === 'found' && look.body.isReleased ? verified() : mismatch(`${id} still stands`);
    },

    rehearsal: {
      count: async (operationId: string) => (await entriesOf(operationId)).length,
      undone: async (operationId: string) =>
        (await entriesOf(operationId)).filter(({ isReleased }) => isReleased).length,
    },
  };
}

/** After a lost answer the desk is asked before anything is sent again (S2.4). */
const askedOf = (book: BookName) => async (context: LookContext) => {
  const look = await getJson<Entry>(
    at(`${book}?operationId=${encodeURIComponent(context.operationId)}`),
    context,
  );
  if (look.kind === 'unreadable') return unknown(look.reason);
  return look.kind === 'found' ? applied({ id: look.body.id }) : notApplied();
};

export const actions = [
  implementAction(reserveFunds, entryIn('funds')),
  implementAction(reserveSlot, { ...entryIn('slots'), lookup: askedOf('slots') }),
  implementAction(bookCarrier, { ...entryIn('carriers'), lookup: askedOf('carriers') }),
] as const;
