/** The deeds. What makes the first safe is the search before and after; the second has the ledger alone. */
import {
  ActionFailure,
  applied,
  implementAction,
  mismatch,
  notApplied,
  notYet,
  unknown,
  verified,
} from '../../src/index.ts';
import { getJson } from '../http-json.ts';
import type { Look } from '../http-json.ts';
import { sendEmail, sendUnsearchable } from './actions.ts';
import type { Filed } from './service.ts';
import { messageIdOf, sendMail } from './smtp.ts';

const sentFolder = (): string => process.env['HOLDFAST_SENT_FOLDER_URL'] ?? 'http://127.0.0.1:7416';

function search(messageId: string, context: { signal: AbortSignal }): Promise<Look<{ messages: Filed[] }>> {
  return getJson(`${sentFolder()}/messages?messageId=${encodeURIComponent(messageId)}`, context);
}

export const email = implementAction(sendEmail, {
  async execute(letter, context) {
    const messageId = messageIdOf(context.operationId);
    // S9: looked up before sending too. The ledger says that nothing was sent; a ledger restored from a backup may not know.
    const look = await search(messageId, context);
    if (look.kind === 'found') return { messageId };
    if (look.kind === 'unreadable')
      throw ActionFailure.notSent(`the sent folder can not be searched: ${look.reason}`);
    await context.assertOwner();
    await sendMail(letter, messageId, context.signal);
    return { messageId };
  },

  async lookup(context) {
    const messageId = messageIdOf(context.operationId);
    const look = await search(messageId, context);
    if (look.kind === 'unreadable') return unknown(look.reason);
    return look.kind === 'found' ? applied({ messageId }) : notApplied();
  },

  async verify({ to, subject, text }, { messageId }, context) {
    const look = await search(messageId, context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    if (look.kind === 'absent') return notYet('the sent folder does not have it');
    const isAsAsked = look.body.messages.every(
      (filed) => filed.to === to && filed.subject === subject && filed.text.trim() === text.trim(),
    );
    return isAsAsked ? verified() : mismatch('what was filed is not what was asked for');
  },

  rehearsal: {
    args: { to: 'rehearsal@example.test', subject: 'Rehearsal', text: 'Nobody reads this.' },
    count: async (operationId) => {
      const look = await search(messageIdOf(operationId), { signal: AbortSignal.timeout(5_000) });
      return look.kind === 'found' ? look.body.messages.length : 0;
    },
  },
});

export const unsearchableEmail = implementAction(sendUnsearchable, {
  async execute(letter, { operationId, signal }) {
    const messageId = messageIdOf(operationId);
    await sendMail(letter, messageId, signal);
    return { messageId };
  },
});
