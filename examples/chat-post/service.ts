/**
 * A chat service, small but real: channels of messages over HTTP, each posted once per client message id.
 *
 *   POST   /messages                 {channel, text} → 201 Message; same Idempotency-Key: the same message, 200
 *   GET    /messages?operationId=    status look-up: 200 Message | 404
 *   GET    /messages?channel=        all of a channel, deleted ones too: 200 {messages}
 *   GET    /messages/:id             200 Message | 404
 *   POST   /messages/:id/replies     somebody answers → 201
 *   POST   /messages/:id/delete      takes it back → 200; again: 200; 409 once somebody has answered
 *
 * Run it: `npx node examples/chat-post/service.ts [port]` (default 7413). How to make it misbehave: ../service-kit.ts.
 */
import { fileURLToPath } from 'node:url';
import { startService } from '../service-kit.ts';
import type { Call, Deed, Reply, Service } from '../service-kit.ts';

export interface Message {
  messageId: string;
  operationId: string;
  channel: string;
  text: string;
  replies: number;
  isDeleted: boolean;
}

export interface ChatBooks {
  /** How often a message was posted, deleted since or not: the oracle of "once". */
  posts: number;
  deletes: number;
  /** What readers see now. */
  visible: number;
}

export type Chat = Service<ChatBooks>;

export function startChat(port = 0): Promise<Chat> {
  const messages: Message[] = [];

  const post = ({ body, idempotencyKey }: Call): Reply | Deed => {
    if (idempotencyKey === null) return refused(400, 'Idempotency-Key is missing');
    const earlier = messages.find(({ operationId }) => operationId === idempotencyKey);
    if (earlier) return { status: 200, body: earlier };
    const { channel, text } = body as { channel: string; text: string };
    if (channel.startsWith('archived-')) return refused(422, `${channel} takes no messages`);
    const wanted: Message = {
      ...{ messageId: 'msg_0', operationId: idempotencyKey, channel, text },
      ...{ replies: 0, isDeleted: false },
    };
    const apply = (wrong: boolean): Reply => {
      const made = { ...wanted, messageId: `msg_${messages.length + 1}` };
      messages.push(wrong ? { ...made, text: text.slice(0, Math.floor(text.length / 2)) } : made);
      return { status: 201, body: made };
    };
    return { apply, lie: wanted };
  };

  const takeBack = (found: Message): Reply | Deed => {
    if (found.replies > 0 && !found.isDeleted)
      return refused(409, `${found.messageId} has ${found.replies} answers`);
    const apply = (): Reply => {
      found.isDeleted = true;
      return { status: 200, body: found };
    };
    return { apply, lie: { ...found, isDeleted: true } };
  };

  const route = (call: Call): Reply | Deed => {
    const [collection, messageId, action] = call.path;
    if (collection !== 'messages') return refused(404, 'no such path');
    if (call.method === 'POST' && messageId === undefined) return post(call);
    const channel = call.query.get('channel');
    if (channel !== null)
      return { status: 200, body: { messages: messages.filter((each) => each.channel === channel) } };
    const operationId = call.query.get('operationId');
    const found = messages.find((each) =>
      messageId === undefined ? each.operationId === operationId : each.messageId === messageId,
    );
    if (found === undefined) return refused(404, 'no such message');
    if (call.method === 'POST' && action === 'delete') return takeBack(found);
    if (call.method === 'POST' && action === 'replies') {
      found.replies += 1;
      return { status: 201, body: found };
    }
    return { status: 200, body: found };
  };

  const books = (): ChatBooks => ({
    posts: messages.length,
    deletes: messages.filter(({ isDeleted }) => isDeleted).length,
    visible: messages.filter(({ isDeleted }) => !isDeleted).length,
  });
  return startService({ route, books }, port);
}

function refused(status: number, error: string): Reply {
  return { status, body: { error } };
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await startChat(Number(process.argv[2] ?? 7413));
  console.log(`chat listens on ${url}`);
}
