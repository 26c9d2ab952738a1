/** The promise: a message is posted in a channel once per key, and taken back where nobody can have acted on it. No I/O here. */
import { z } from 'zod';
import { defineAction } from '../../src/index.ts';

/** Channels whose every message reaches people outside, or wakes them. */
const LOUD = /^(announcements|incidents|customers-)/;

export const postMessage = defineAction({
  name: 'post_message',
  version: 1,
  description: 'Posts a message in a chat channel. Messages that reach many people take an approval.',
  input: z.object({ channel: z.string().min(1).max(80), text: z.string().min(1).max(4_000) }),
  output: z.object({ messageId: z.string(), channel: z.string() }),
  // The service posts once per client message id, which is the operationId: sent again, it is the same message.
  effect: 'conditional',
  lookup: 'conclusive',
  // Taking a post back could be three things. *Delete* leaves nothing but what people read meanwhile. *Correct* (a second
  // message) keeps a wrong statement on the record and tells everybody twice. *Alert* leaves it all to a person. What
  // Holdfast takes back by itself is a message posted wrongly or under a cancel, seconds old, with nobody's answer below
  // it: delete is the smallest change then, so the plan is the inverse, in place. Where somebody has answered already,
  // deleting would tear a conversation apart: the handler refuses, and a person is alerted.
  rollback: { kind: 'inBand' },
  approval: ({ channel }) => LOUD.test(channel) && { roles: ['editor'], expiresIn: '8h' },
  deadlines: { attempt: '10s', verify: '10s', run: '1h' },
  onCancel: 'rollback',
});
