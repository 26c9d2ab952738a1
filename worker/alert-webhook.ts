/**
 * Alerts as signed HTTP requests, by the Standard Webhooks specification: any of its libraries verifies them, and
 * docs/operations.md has the recipe in a dozen lines.
 *
 * 1. What is signed is `id.timestamp.body`: neither another body, nor an old request, nor another id passes for it.
 * 2. Only a 2xx says that it was taken. A redirect is none: the signed alert goes where it was configured to go.
 * 3. Neither secret nor address, which may hold one, is ever in an error, the log or the ledger.
 */
import { createHmac } from 'node:crypto';
import { fetchFailure } from '../src/contract/classify-failure.ts';
import type { Alert } from '../src/ledger/ledger.ts';
import { NotDelivered } from './outbox-relay.ts';
import type { AlertSink } from './outbox-relay.ts';

export interface WebhookOptions {
  url: string;
  /** Each signs; the newest first, the others for receivers that do not have it yet. */
  secrets: readonly Uint8Array[];
  /** Default: this process's clock. */
  nowMs?: () => number;
}

const SECRET_PREFIX = 'whsec_';
const SECRET_BYTES = { least: 24, most: 64 };

/** The bytes of `whsec_` and base64; null for anything else or another length. */
export function parseWebhookSecret(text: string): Uint8Array | null {
  const encoded = text.trim().replace(SECRET_PREFIX, '');
  const bytes = Buffer.from(encoded, 'base64');
  const isWhole = bytes.toString('base64').replace(/=+$/, '') === encoded.replace(/=+$/, '');
  const { least, most } = SECRET_BYTES;
  return isWhole && bytes.length >= least && bytes.length <= most ? new Uint8Array(bytes) : null;
}

/** HTTPS, or plain HTTP to this machine; no credentials in it. */
export function isWebhookUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password } = new URL(text);
  const isLocal = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(hostname);
  return (protocol === 'https:' || (protocol === 'http:' && isLocal)) && username === '' && password === '';
}

export function webhookSink({ url, secrets, nowMs = Date.now }: WebhookOptions): AlertSink {
  return {
    async deliver({ id, alert, createdAt }, signal) {
      const body = bodyOf(id, alert, createdAt);
      const response = await fetch(url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'user-agent': 'holdfast',
          ...signedHeaders(`alert_${id}`, Math.floor(nowMs() / 1_000), body, secrets),
        },
        body,
        redirect: 'manual',
        signal,
      }).catch((error: unknown) => Promise.reject(new NotDelivered(whyUnanswered(error, signal))));
      await response.body?.cancel().catch(() => undefined);
      if (response.ok) return;
      const failure = fetchFailure(response, nowMs());
      throw new NotDelivered(
        failure?.message ?? `the receiver answered HTTP ${response.status}; redirects are not followed`,
        failure?.retryAfterMs,
      );
    },
  };
}

function bodyOf(id: number, { type, ...alert }: Alert, createdAt: number): string {
  const timestamp = new Date(createdAt).toISOString();
  return JSON.stringify({ type: `holdfast.${type}`, timestamp, data: { id, ...alert } });
}

function signedHeaders(
  id: string,
  timestamp: number,
  body: string,
  secrets: readonly Uint8Array[],
): Record<string, string> {
  const signatures = secrets.map(
    (secret) => `v1,${createHmac('sha256', secret).update(`${id}.${timestamp}.${body}`).digest('base64')}`,
  );
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
  };
}

/** By the code alone: messages of the client repeat addresses. */
function whyUnanswered(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'the receiver did not answer in time';
  const cause = error instanceof Error ? error.cause : undefined;
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'no connection';
  return `the receiver could not be reached (${code})`;
}
