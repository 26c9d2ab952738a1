/** One action that a person must approve, in front of which nobody polls: what is heard of its task is heard as a hint. */
import { z } from 'zod';
import { defineAction, defineConfig, implementAction } from '../../src/index.ts';

export default defineConfig({
  actions: [
    implementAction(
      defineAction({
        name: 'publish_note',
        version: 1,
        description: 'Publishes a note once somebody approved it.',
        input: z.object({ text: z.string() }),
        output: z.object({ published: z.string(), under: z.string() }),
        effect: 'conditional',
        rollback: { kind: 'outOfBand' },
        verify: { none: 'it goes nowhere' },
        approval: () => ({ expiresIn: '7d', mayAnswerOverMcp: true, requesterMayDecide: true }),
      }),
      { execute: ({ text }, { operationId }) => Promise.resolve({ published: text, under: operationId }) },
    ),
  ],
  // A day between two polls: longer than any test.
  limits: { inlineWaitMs: 0, listenPollMs: 86_400_000 },
});
