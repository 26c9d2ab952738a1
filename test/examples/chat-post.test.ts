/** The oracle is the chat service's own books: what was posted, and what readers still see. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { post } from '../../examples/chat-post/handlers.ts';
import { startChat } from '../../examples/chat-post/service.ts';
import type { Chat } from '../../examples/chat-post/service.ts';
import { openTestServer, rehearse } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

const NOTE = { channel: 'team', text: 'deployed' };

let chat: Chat;
let server: TestServer;
let example: OpenExample<unknown>;
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());
beforeEach(async () => {
  chat = await startChat();
  process.env['HOLDFAST_CHAT_URL'] = chat.url;
  example = await openExample(server, [post]);
});
afterEach(async () => {
  await example.close();
  await chat.close();
});

describe('chat-post example', () => {
  test('[S1.3] [S2.4] a message is posted once, however often the same key asks and though an answer is lost', async () => {
    chat.behave('drop', 1);
    const ends = await Promise.all([1, 2].map(() => example.call('post_message', NOTE, 'deploy-9')));
    expect(ends.map(({ status }) => status)).toEqual(['completed', 'completed']);
    expect(chat.books()).toEqual({ posts: 1, deletes: 0, visible: 1 });
  });

  test('[S6.1] a message that came out wrong is deleted, and a person hears of it', async () => {
    chat.behave('wrong', 1);
    const end = await example.call('post_message', NOTE, 'deploy-9');
    expect(end).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'verify_failed' });
    expect(chat.books()).toEqual({ posts: 1, deletes: 1, visible: 0 });
    expect(await example.alerts(end.taskId)).toContain('verify_failed');
  });

  test('[S6.2] [S7.4] one that somebody has answered is not torn out of its thread: a person decides', async () => {
    chat.behave('hold', 1);
    const { taskId } = await example.start('post_message', NOTE, 'deploy-9');
    await chat.held();
    await fetch(`${chat.url}/messages/msg_1/replies`, { method: 'POST', body: '{}' });
    await example.cancel(taskId);
    chat.release();
    expect(await example.wait(taskId)).toMatchObject({ status: 'needs_attention' });
    expect(chat.books()).toEqual({ posts: 1, deletes: 0, visible: 1 });
  });

  test('[S4.2] [case 22] an approval by an editor, who edits: what is posted is the edited text, once', async () => {
    const args = { channel: 'incidents', text: 'IT IS DOWN' };
    const { taskId } = await example.call('post_message', args, 'incident-4');
    const edit = { kind: 'edit', arguments: { ...args, text: 'It is slow.' } } as const;
    expect(await example.decide(taskId, 'bob', ['editor'], edit)).toMatchObject({ code: 'edited' });
    const end = await example.wait(taskId);
    expect(end).toMatchObject({ status: 'completed', editedFrom: { by: 'bob' } });
    const posted = await fetch(`${chat.url}/messages/msg_1`).then((response) => response.json() as unknown);
    expect(posted).toMatchObject({ text: 'It is slow.' });
    expect(chat.books().posts).toBe(1);
  });

  test('[S6.6] the rehearsal finds no broken promise at every crash point crash', async () => {
    const found = await rehearse(post, { server, only: 'crash' });
    expect(found.broken).toEqual([]);
    expect(found.scenarios.length).toBeGreaterThan(3);
  });
});
