/** Charges that somebody must approve, at a provider that keeps its own books and outlives every process of ours. */
import { z } from 'zod';
import {
  applied,
  defineAction,
  defineConfig,
  implementAction,
  notApplied,
  unknown,
} from '../../src/index.ts';
import { getJson, postJson } from '../../examples/http-json.ts';

const at = (path: string) => `${process.env['HOLDFAST_PROVIDER_URL']}/charges${path}`;

export default defineConfig({
  actions: [
    implementAction(
      defineAction({
        name: 'charge',
        version: 1,
        description: 'Charges a customer once somebody approved it.',
        input: z.object({ customer: z.string(), amountCents: z.int() }),
        output: z.object({ chargeId: z.string() }),
        effect: 'conditional',
        rollback: { kind: 'outOfBand' },
        verify: { none: 'the books are the oracle' },
        approval: () => ({ expiresIn: '7d', mayAnswerOverMcp: true, requesterMayDecide: true }),
      }),
      {
        execute: async (input, context) => {
          const { chargeId } = await postJson<{ chargeId: string }>(
            at(''),
            { ...input, currency: 'EUR' },
            context,
          );
          return { chargeId };
        },
        lookup: async (context) => {
          const path = at(`?idempotencyKey=${encodeURIComponent(context.operationId)}`);
          const look = await getJson<{ chargeId: string }>(path, context);
          if (look.kind === 'unreadable') return unknown(look.reason);
          return look.kind === 'found' ? applied({ chargeId: look.body.chargeId }) : notApplied();
        },
      },
    ),
  ],
});
