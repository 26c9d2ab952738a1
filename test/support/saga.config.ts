// A newcomer's configuration: actions, and a procedure in a file of its own.
import { z } from 'zod';
import { defineConfig, defineProcedure } from '../../src/index.ts';
import { bookActions } from './book-actions.ts';

export default defineConfig({
  actions: [...bookActions],
  procedures: {
    code: './procedures/saga.ts',
    contracts: [
      defineProcedure({
        name: 'trip',
        description: 'Books a flight, a hotel and a car, or nothing.',
        input: z.object({ fail: z.array(z.string()).optional() }),
      }),
      defineProcedure({ name: 'two_words', description: 'Asks two people at once.', input: z.object({}) }),
    ],
  },
});
