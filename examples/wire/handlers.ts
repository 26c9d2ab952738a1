/** The deed: one POST that names the operationId as its reference, since that is all a bank without keys can be asked by. */
import {
  applied,
  implementAction,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/index.ts';
import { getJson, postJson } from '../http-json.ts';
import { wireMoney } from './actions.ts';
import type { Wire } from './service.ts';

const at = (path: string): string =>
  `${process.env['HOLDFAST_BANK_URL'] ?? 'http://127.0.0.1:7414'}/wires${path}`;

const result = ({ wireId, iban, amountCents }: Wire) => ({ wireId, iban, amountCents });

export const wire = implementAction(wireMoney, {
  async execute({ iban, amountCents, currency, purpose }, context) {
    const body = { reference: context.operationId, iban, amountCents, currency, purpose };
    return result(await postJson<Wire>(at(''), body, context));
  },

  async lookup(context) {
    const look = await getJson<Wire>(at(`?reference=${encodeURIComponent(context.operationId)}`), context);
    if (look.kind === 'unreadable') return unknown(look.reason);
    return look.kind === 'found' ? applied(result(look.body)) : notApplied();
  },

  async verify({ iban, amountCents, currency }, { wireId }, context) {
    const look = await getJson<Wire>(at(`/${encodeURIComponent(wireId)}`), context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    if (look.kind === 'absent') return mismatch(`the bank knows no wire ${wireId}`);
    const sent = look.body;
    return sent.iban === iban && sent.amountCents === amountCents && sent.currency === currency
      ? verified()
      : mismatch(`${wireId} is not what was asked for`);
  },

  rehearsal: {
    args: { iban: 'DE02120300000000202051', amountCents: 100, currency: 'EUR' },
    /** The bank's own list, where a wire that left twice is twice. */
    count: async (operationId, { args: { iban } }) => {
      const response = await fetch(at(`?iban=${encodeURIComponent(iban)}`));
      const { wires } = (await response.json()) as { wires: Wire[] };
      return wires.filter(({ reference }) => reference === operationId).length;
    },
  },
});
