/** A configuration that must not start (field case 3): one of two write tools forgets to pass its key on. */
import { z } from 'zod';
import { ActionFailure, defineAction, implementAction } from '../../src/index.ts';

const terms = {
  version: 1,
  description: 'Writes.',
  input: z.object({ value: z.string() }),
  output: z.object({}),
  effect: 'conditional',
  rollback: { kind: 'outOfBand' },
  verify: { none: 'it never gets that far' },
} as const;

export default {
  actions: [
    implementAction(defineAction({ ...terms, name: 'forwards_the_key' }), {
      execute: (_input, { operationId }) => Promise.reject(ActionFailure.notSent(operationId)),
    }),
    implementAction(defineAction({ ...terms, name: 'forgets_the_key' }), {
      execute: () => Promise.resolve({}),
    }),
  ],
};
