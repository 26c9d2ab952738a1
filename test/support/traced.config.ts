/** Actions whose handlers make spans of their own, as a user's would. What is theirs to keep says `canary`. */
import { trace } from '@opentelemetry/api';
import { z } from 'zod';
import {
  ActionFailure,
  defineAction,
  defineConfig,
  holds,
  implementAction,
  verified,
} from '../../src/index.ts';

const described = {
  version: 1,
  description: 'Takes a note.',
  input: z.object({ text: z.string() }),
  output: z.object({ kept: z.string() }),
  effect: 'conditional',
  rollback: { kind: 'outOfBand' },
  deadlines: { attempt: '1s', verify: '500ms', run: '10m' },
} as const;
const unverified = { ...described, verify: { none: 'there is nothing to read back' } };

/** Nests below whatever span is active where the handler runs. */
const ownWork = (operationId: string, name: string) =>
  trace.getTracer('a user').startActiveSpan(name, async (span) => {
    await Promise.resolve();
    span.end();
    return { kept: `canary result of ${operationId}` };
  });

const dispatched = implementAction(defineAction({ ...described, name: 'traced_dispatched', inline: false }), {
  precondition: () => Promise.resolve(holds()),
  execute: (_input, { operationId }) => ownWork(operationId, 'own work'),
  verify: () => Promise.resolve(verified()),
});
const inline = implementAction(defineAction({ ...unverified, name: 'traced_inline' }), {
  execute: (_input, { operationId }) => ownWork(operationId, 'own inline work'),
});
const approved = implementAction(
  defineAction({
    ...unverified,
    name: 'traced_approved',
    approval: () => ({ expiresIn: '7d', requesterMayDecide: true }),
  }),
  { execute: (_input, { operationId }) => ownWork(operationId, 'own approved work') },
);
const failing = implementAction(defineAction({ ...unverified, name: 'traced_failing', inline: false }), {
  execute: ({ text }, { operationId }) => {
    throw new ActionFailure({
      kind: 'permanent',
      code: 'broken',
      message: `canary message about ${text} in ${operationId}`,
    });
  },
});

export default defineConfig({ actions: [dispatched, inline, approved, failing] });
