/** The promises: a mail leaves once, by a protocol that knows no key for it. README.md has what each leaves open. No I/O here. */
import { z } from 'zod';
import { defineAction } from '../../src/index.ts';

const letter = z.object({
  to: z.email().max(254),
  subject: z.string().min(1).max(200),
  text: z.string().min(1).max(50_000),
});

export const sendEmail = defineAction({
  name: 'send_email',
  version: 1,
  description: 'Sends a mail. It can not be recalled.',
  input: letter,
  output: z.object({ messageId: z.string() }),
  // Nobody dedupes: SMTP takes the same message twice and delivers it twice. So nothing is sent again on a guess.
  effect: 'unsafe',
  // The server files each mail before it says 250, under a Message-ID that derives from the operationId. One it does not
  // have after the settle time was never taken. `conclusive` is that promise about this server; where the sent folder
  // fills only eventually, write 'plain', and a person is asked instead.
  lookup: 'conclusive',
  // A mail that was read can not be unread, so nothing Holdfast could send would undo it; a correction is a new mail, whose
  // words are for a person to find. Hence neither `compensate` nor `inBand`. `none` would ask for a typed phrase before
  // every mail; this asks a person only about one that came out wrong.
  rollback: { kind: 'outOfBand', reason: 'Sent is sent: a person decides whether to write a correction.' },
  deadlines: { attempt: '15s', verify: '30s', settle: '30s', run: '1h' },
});

/** The same by a relay that keeps nothing to search: the outbox alone (S9). */
export const sendUnsearchable = defineAction({
  name: 'send_email_unsearchable',
  version: 1,
  description: 'Sends a mail through a relay that keeps no copy. It can not be recalled.',
  input: letter,
  output: z.object({ messageId: z.string() }),
  effect: 'unsafe',
  verify: { none: 'The relay keeps no copy; its 250 is all there is.' },
  rollback: { kind: 'outOfBand', reason: 'Sent is sent: a person decides whether to write a correction.' },
  deadlines: { attempt: '15s', run: '1h' },
});
