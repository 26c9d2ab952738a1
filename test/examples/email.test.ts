/** The oracle is the mail server's own store: every mail it took, duplicates included. */
import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { sendEmail, sendUnsearchable } from '../../examples/email/actions.ts';
import { email, unsearchableEmail } from '../../examples/email/handlers.ts';
import { startMailServer } from '../../examples/email/service.ts';
import type { MailServer } from '../../examples/email/service.ts';
import { implementAction } from '../../src/index.ts';
import { messageIdOf } from '../../examples/email/smtp.ts';
import { freePort } from '../../src/embedded/free-port.ts';
import type { FaultPoint } from '../../src/operation/faults.ts';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { handlersOf, openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

const LETTER = { to: 'ann@example.test', subject: 'Your order', text: 'It is on its way.' };
/** The example's own promises, on a clock that a test can wait for. */
const SOON = { attemptMs: 1_500, settleMs: 500, verifyMs: 1_000 };
const soon = [
  implementAction(
    { ...sendEmail, deadlines: { ...sendEmail.deadlines, ...SOON } },
    handlersOf(email, sendEmail),
  ),
  implementAction(
    { ...sendUnsearchable, deadlines: { ...sendUnsearchable.deadlines, ...SOON } },
    handlersOf(unsearchableEmail, sendUnsearchable),
  ),
];

let mail: MailServer;
let server: TestServer;
let example: OpenExample<unknown>;
let crashAt: FaultPoint | null;
let atCrash: () => void;
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());
beforeEach(async () => {
  mail = await startMailServer();
  process.env['HOLDFAST_SMTP_URL'] = mail.smtpUrl;
  process.env['HOLDFAST_SENT_FOLDER_URL'] = mail.folderUrl;
  crashAt = null;
  atCrash = () => undefined;
  example = await openExample(server, soon, undefined, {
    faults: async ({ point }) => {
      if (point !== crashAt) return;
      crashAt = null;
      atCrash();
      throw new Error(`the worker died at ${point}`);
    },
  });
});
afterEach(async () => {
  await example.close();
  await mail.close();
});

const send = (action = 'send_email') => example.call(action, LETTER, 'order-9');
const resolved = (taskId: string) =>
  expect.poll(() => example.wait(taskId), { timeout: 20_000 }).toMatchObject(DONE);
const DONE = { status: 'completed', effect: 'applied' };

describe('email example', () => {
  test('[S1.3] a mail is sent once, however often the same key asks, under an id of the operation', async () => {
    const ends = await Promise.all([send(), send(), send()]);
    expect(ends.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
    const messageId = messageIdOf(ends[0].operationId);
    expect(mail.filed()).toMatchObject([{ messageId, to: LETTER.to, subject: LETTER.subject }]);
    expect(ends[0].result).toEqual({ messageId });
  });

  test.each(['after_effect', 'after_verify'] as const)(
    '[S9] [S2.4] a crash %s, before the ledger knows, is found by its Message-ID: one mail in the store',
    async (point) => {
      crashAt = point;
      expect(await send()).toMatchObject(DONE);
      expect(mail.filed()).toHaveLength(1);
    },
  );

  test('[S9] [S2.4] a crash before the mail left is found out too, once nothing can be on its way: then it is sent', async () => {
    crashAt = 'after_intent';
    expect(await send()).toMatchObject(DONE);
    expect(mail.filed()).toHaveLength(1);
  });

  test('[S2.4] [S5] a reply that never comes is a timeout, not a failure: the folder is searched', async () => {
    mail.behave('hold');
    expect(await send()).toMatchObject(DONE);
    expect(mail.filed()).toHaveLength(1);
  });

  test('[S2.4] [S5] a connection that breaks after DATA proves nothing: the folder is searched', async () => {
    mail.behave('drop');
    expect(await send()).toMatchObject(DONE);
    expect(mail.filed()).toHaveLength(1);
  });

  test('[S9] [S5] without a folder to search, a connection that breaks after DATA asks a person: nothing is sent again', async () => {
    mail.behave('drop');
    expect(await send('send_email_unsearchable')).toMatchObject({ status: 'needs_attention' });
    expect(mail.filed()).toHaveLength(1);
  });

  test('[S5] a server that can not be reached has nothing: the mail goes once it is there', async () => {
    process.env['HOLDFAST_SMTP_URL'] = `smtp://127.0.0.1:${await freePort()}`;
    const { taskId } = await example.start('send_email_unsearchable', LETTER, 'order-9');
    await expect
      .poll(async () => (await example.peek(taskId)).attempts, { timeout: 10_000 })
      .toBeGreaterThan(1);
    process.env['HOLDFAST_SMTP_URL'] = mail.smtpUrl;
    expect(await example.wait(taskId)).toMatchObject(DONE);
    expect(mail.filed()).toHaveLength(1);
  });

  test('[S9] [S3.5] a crash while the folder can not be searched asks a person, sends nothing more, and is reconciled by hand', async () => {
    crashAt = 'after_effect';
    atCrash = () => mail.setSearchable(false);
    const { taskId, operationId, status } = await send();
    expect(status).toBe('needs_attention');
    expect(await example.alerts(taskId)).toContain('needs_attention');
    expect(mail.filed()).toHaveLength(1);
    // A person finds the mail by its Message-ID, and what it says is checked like any other result.
    mail.setSearchable(true);
    await example.resolve(taskId, { as: 'applied', result: { messageId: messageIdOf(operationId) } });
    await resolved(taskId);
    expect(mail.filed()).toHaveLength(1);
  });

  test('[S9] ledger and engine restored from before the mail know nothing of it, the folder does: it is not sent again', async () => {
    const tenant = `tenant-${randomUUID()}`;
    const restored = await openTestServer('local');
    try {
      for (const engine of [server, restored]) {
        await example.close();
        example = await openExample(engine, soon, undefined, { tenant });
        expect(await send()).toMatchObject({ ...DONE, replayed: false });
      }
      expect(mail.filed()).toHaveLength(1);
    } finally {
      await example.close();
      example = await openExample(server, soon);
      await restored.close();
    }
  });

  test('[S9] before the first send the folder is asked, and while it does not answer nothing is sent', async () => {
    mail.setSearchable(false);
    const { taskId } = await example.start('send_email', LETTER, 'order-9');
    await expect
      .poll(async () => (await example.peek(taskId)).attempts, { timeout: 10_000 })
      .toBeGreaterThan(1);
    expect(mail.filed()).toEqual([]);
    mail.setSearchable(true);
    expect(await example.wait(taskId)).toMatchObject(DONE);
    expect(mail.filed()).toHaveLength(1);
  });

  test('[S5] a mail that the server refuses for good is permanent: nothing was sent, nothing is tried again', async () => {
    mail.behave('refuse');
    expect(await send()).toMatchObject({ status: 'failed', effect: 'none', cause: 'permanent_failure' });
    expect(mail.filed()).toEqual([]);
  });

  test('[S9] without a folder to search a crash after the intent is a person’s to judge: sent again on their word alone, under the same Message-ID', async () => {
    crashAt = 'after_effect';
    const asked = await send('send_email_unsearchable');
    expect(asked).toMatchObject({ status: 'needs_attention' });
    expect(mail.filed()).toHaveLength(1);
    // The wrong word: the mail had arrived. What a receiver that drops known Message-IDs shows is still one.
    await example.resolve(asked.taskId, { as: 'not_applied' });
    await resolved(asked.taskId);
    expect(mail.filed()).toHaveLength(2);
    expect(new Set(mail.filed().map(({ messageId }) => messageId)).size).toBe(1);
  });
});
