/**
 * A mail server with a sent folder that can be searched: MailDev's SMTP server and store, and one HTTP path on it.
 *
 *   GET /messages?messageId=   200 {messages} | 404 | 503 while the folder is away
 *
 * Mails are filed before the server says 250. How the server misbehaves is switched in this process, for the tests.
 * Run it: `npx node examples/email/service.ts` (SMTP on 7415, the folder on 7416). Needs `@maildev/smtp`.
 */
import { mkdtemp, rm } from 'node:fs/promises';
import type { Server, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { MemoryStorage } from '@maildev/core';
import type { Email } from '@maildev/core';
import { SMTPServer } from '@maildev/smtp';
import { startService } from '../service-kit.ts';
import type { Call, Reply } from '../service-kit.ts';

/** A mail as the sent folder has it. */
export interface Filed {
  messageId: string;
  to: string;
  subject: string;
  text: string;
}

/** `hold`: filed, and the 250 never comes. `drop`: filed, and the connection is cut instead. `refuse`: not filed, 554. */
type MailBehaviour = 'normal' | 'hold' | 'drop' | 'refuse';

export interface MailServer {
  smtpUrl: string;
  folderUrl: string;
  /** Every mail that was taken, duplicates included: the oracle of "once". */
  filed(): Filed[];
  behave(behaviour: MailBehaviour): void;
  /** While false, searching answers 503. */
  setSearchable(isSearchable: boolean): void;
  close(): Promise<void>;
}

class SentFolder extends MemoryStorage {
  behaviour: MailBehaviour = 'normal';
  readonly connections = new Set<Socket>();
  #held: (() => void)[] = [];

  override async save(email: Email): Promise<void> {
    if (this.behaviour === 'refuse')
      throw Object.assign(new Error('Message refused by policy'), { responseCode: 554 });
    await super.save(email);
    if (this.behaviour === 'drop') for (const connection of this.connections) connection.resetAndDestroy();
    if (this.behaviour === 'hold') await new Promise<void>((resolve) => this.#held.push(resolve));
  }

  release(): void {
    for (const resolve of this.#held.splice(0)) resolve();
  }

  filed(): Filed[] {
    return [...this.emails.values()].map(({ headers, to, subject, text = '' }) => ({
      messageId: String(headers['message-id']),
      to: to.map(({ address }) => address).join(', '),
      subject,
      text,
    }));
  }
}

export async function startMailServer({ smtpPort = 0, folderPort = 0 } = {}): Promise<MailServer> {
  const mailDir = await mkdtemp(join(tmpdir(), 'holdfast-mail-'));
  const storage = new SentFolder();
  const smtp = new SMTPServer({ port: smtpPort, host: '127.0.0.1', storage, mailDir, logger: false });
  await smtp.start();
  connectionsOf(smtp).on('connection', (socket: Socket) => {
    storage.connections.add(socket);
    socket.once('close', () => storage.connections.delete(socket));
  });
  let isSearchable = true;
  const route = ({ path, query }: Call): Reply => {
    if (!isSearchable) return { status: 503, body: { error: 'the folder is away' } };
    const found = storage.filed().filter(({ messageId }) => messageId === query.get('messageId'));
    return path[0] === 'messages' && found.length > 0
      ? { status: 200, body: { messages: found } }
      : { status: 404, body: { error: 'no such mail' } };
  };
  const folder = await startService({ route, books: () => ({ mails: storage.filed().length }) }, folderPort);
  return {
    smtpUrl: `smtp://127.0.0.1:${smtp.getPort()}`,
    folderUrl: folder.url,
    filed: () => storage.filed(),
    behave: (behaviour) => {
      storage.behaviour = behaviour;
      if (behaviour !== 'hold') storage.release();
    },
    setSearchable: (value) => {
      isSearchable = value;
    },
    close: async () => {
      storage.release();
      await folder.close();
      await smtp.stop();
      await rm(mailDir, { recursive: true, force: true });
    },
  };
}

/** MailDev keeps its listener to itself, and cutting a connection needs it. */
const connectionsOf = (smtp: SMTPServer): Server =>
  (smtp as unknown as { smtp: { server: Server } }).smtp.server;

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { smtpUrl, folderUrl } = await startMailServer({ smtpPort: 7415, folderPort: 7416 });
  console.log(`mail server listens on ${smtpUrl}, its sent folder on ${folderUrl}`);
}
