/** The deed: one POST with the operationId as client message id, read back, and deleted while nobody has answered it. */
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
import { postMessage } from './actions.ts';
import type { Message } from './service.ts';

const at = (path: string): string =>
  `${process.env['HOLDFAST_CHAT_URL'] ?? 'http://127.0.0.1:7413'}/messages${path}`;

const result = ({ messageId, channel }: Message) => ({ messageId, channel });

/** The channel's own list, for the rehearsal: a message posted twice is there twice. */
async function postsOf(operationId: string, { channel }: { channel: string }): Promise<Message[]> {
  const response = await fetch(at(`?channel=${encodeURIComponent(channel)}`));
  const { messages } = (await response.json()) as { messages: Message[] };
  return messages.filter((message) => message.operationId === operationId);
}

export const post = implementAction(postMessage, {
  execute: async (input, context) => result(await postJson<Message>(at(''), input, context)),

  async lookup(context) {
    const look = await getJson<Message>(
      at(`?operationId=${encodeURIComponent(context.operationId)}`),
      context,
    );
    if (look.kind === 'unreadable') return unknown(look.reason);
    return look.kind === 'found' ? applied(result(look.body)) : notApplied();
  },

  async verify({ channel, text }, { messageId }, context) {
    const look = await getJson<Message>(at(`/${encodeURIComponent(messageId)}`), context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    if (look.kind === 'absent') return mismatch(`the channel has no message ${messageId}`);
    const posted = look.body;
    return posted.channel === channel && posted.text === text && !posted.isDeleted
      ? verified()
      : mismatch(`${messageId} is not what was to be posted`);
  },

  /** Refused by the service (409) once somebody answered: then the task waits for a person, alerted. */
  async rollback(_input, { messageId }, context) {
    await postJson(at(`/${encodeURIComponent(messageId)}/delete`), {}, context);
    return { remains: 'whoever read the message meanwhile has read it' };
  },

  async verifyRollback(_input, { messageId }, context) {
    const look = await getJson<Message>(at(`/${encodeURIComponent(messageId)}`), context);
    if (look.kind === 'unreadable') return notYet(look.reason);
    return look.kind === 'absent' || look.body.isDeleted
      ? verified()
      : mismatch(`${messageId} is still there`);
  },

  rehearsal: {
    args: { channel: 'rehearsal', text: 'The deploy went out.' },
    count: async (operationId, { args }) => (await postsOf(operationId, args)).length,
    undone: async (operationId, { args }) =>
      (await postsOf(operationId, args)).filter(({ isDeleted }) => isDeleted).length,
  },
});
