/**
 * One mail over SMTP, and what each way it can fail proves. Until the server has the whole message it has nothing
 * (RFC 5321, 4.2.5 and 6.1): a refusal before or after DATA means not sent. Once the message is on its way and no reply
 * comes, nobody knows.
 */
import { createTransport } from 'nodemailer';
import { ActionFailure } from '../../src/index.ts';

export interface Letter {
  to: string;
  subject: string;
  text: string;
}

const server = (): string => process.env['HOLDFAST_SMTP_URL'] ?? 'smtp://127.0.0.1:7415';
const FROM = 'holdfast@example.test';
/** A reply that takes longer is taken for lost; below the attempt's deadline. */
const SILENCE_MS = 10_000;

/** The same for every attempt: what the sent folder is searched for, and what receivers drop a second copy by. */
export const messageIdOf = (operationId: string): string => `<${operationId}@holdfast.example.test>`;

interface SmtpError extends Error {
  code?: string;
  syscall?: string;
  responseCode?: number;
}

export async function sendMail(
  { to, subject, text }: Letter,
  messageId: string,
  signal: AbortSignal,
): Promise<void> {
  const transport = createTransport({
    url: server(),
    connectionTimeout: SILENCE_MS,
    greetingTimeout: SILENCE_MS,
    socketTimeout: SILENCE_MS,
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  const aborted = new Promise<never>((_resolve, reject) => {
    signal.addEventListener('abort', () => reject(new Error('no reply in time')), { once: true });
  });
  try {
    await Promise.race([transport.sendMail({ from: FROM, to, subject, text, messageId }), aborted]);
  } catch (error) {
    throw provenBy(error as SmtpError);
  } finally {
    transport.close();
  }
}

function provenBy(error: SmtpError): Error {
  const { code, syscall, responseCode = 0, message } = error;
  if (responseCode >= 500) return ActionFailure.permanent(`the server refused the mail: ${message}`);
  if (responseCode >= 400) return ActionFailure.notSent(`the server does not take the mail now: ${message}`);
  // nodemailer names the command CONN for every broken connection, also one that broke after DATA.
  if (code === 'EDNS' || syscall === 'connect')
    return ActionFailure.notSent(`the server can not be reached: ${message}`);
  return error;
}
