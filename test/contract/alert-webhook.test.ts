// S6.5, S9: alerts as signed requests, against a real receiver, verified by the recipe in docs/operations.md.
import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Webhook } from 'standardwebhooks';
import { isWebhookUrl, parseWebhookSecret, webhookSink } from '../../worker/alert-webhook.ts';
import { readSettings } from '../../worker/read-settings.ts';
import * as fixture from './ledger-fixture.ts';

type Verify = (headers: object, body: string, secret: string, nowSeconds?: number) => unknown;
const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
const recipe = /```js verify-alert\n([\s\S]*?)```/.exec(page)?.[1] ?? '';
const { verifyAlert } = (await import(`data:text/javascript,${encodeURIComponent(recipe)}`)) as {
  verifyAlert: Verify;
};

const secretOf = (seed: number) => `whsec_${Buffer.alloc(32, seed).toString('base64')}`;
const [OLD, NEW, OTHER] = [secretOf(1), secretOf(2), secretOf(3)];
const bytesOf = (secret: string) => parseWebhookSecret(secret) ?? new Uint8Array();
const ALERT = fixture.alertAbout({ operationId: 'op_1', taskId: 'task_1', ordinal: 1 });

interface Received {
  url: string;
  headers: Record<string, string>;
  body: string;
}

describe('an alert by webhook', () => {
  let server: Server;
  let received: Received[];
  let answer: (request: IncomingMessage, response: ServerResponse) => void;
  let url: string;
  beforeEach(async () => {
    received = [];
    answer = (_request, response) => void response.end();
    server = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (text: string) => (body += text));
      request.on('end', () => {
        received.push({ url: request.url ?? '', headers: request.headers as never, body });
        answer(request, response);
      });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook?key=in-the-address`;
  });
  afterEach(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });

  const send = (secrets = [NEW], signal = AbortSignal.timeout(5_000), to = url) =>
    webhookSink({ url: to, secrets: secrets.map(bytesOf) }).deliver(
      { id: 7, alert: ALERT, createdAt: 1_767_323_045_678 },
      signal,
    );
  const status = (code: number, headers = {}) => {
    answer = (_request, response) => void response.writeHead(code, headers).end('secret words');
  };
  const whyNot = (work: Promise<void>) =>
    work.then(
      () => {
        throw new Error('it was taken');
      },
      (error: Error & { retryAfterMs?: number }) => ({
        why: error.message,
        retryAfterMs: error.retryAfterMs,
      }),
    );

  test('[S9] carries the alert and passes the documented recipe and a library of Standard Webhooks', async () => {
    await send();
    const [{ headers, body }] = received as [Received];
    expect(verifyAlert(headers, body, NEW)).toEqual({
      type: 'holdfast.needs_attention',
      timestamp: '2026-01-02T03:04:05.678Z',
      data: {
        id: 7,
        taskId: 'task_1',
        operationId: 'op_1',
        tenant: 'acme',
        action: 'reserve_inventory',
        message: 'a person should look',
        data: { operationId: 'op_1' },
      },
    });
    expect(headers['webhook-id']).toBe('alert_7');
    expect(new Webhook(NEW).verify(body, headers)).toEqual(JSON.parse(body));
  });

  test('[S9] with another body, id, time or secret does not pass, nor when it is old', async () => {
    await send();
    const [{ headers, body }] = received as [Received];
    const later = Number(headers['webhook-timestamp']) + 301;
    const wrong: [object, string, string, number?][] = [
      [headers, `${body} `, NEW],
      [{ ...headers, 'webhook-id': 'alert_8' }, body, NEW],
      [{ ...headers, 'webhook-timestamp': String(later - 300) }, body, NEW],
      [{ ...headers, 'webhook-signature': 'v1,AAAA' }, body, NEW],
      [headers, body, OTHER],
      [headers, body, NEW, later],
    ];
    for (const given of wrong) expect(() => verifyAlert(...given)).toThrow();
  });

  test('[S9] is signed with both secrets while they are rotated', async () => {
    await send([NEW, OLD]);
    const [{ headers, body }] = received as [Received];
    for (const secret of [OLD, NEW]) expect(() => verifyAlert(headers, body, secret)).not.toThrow();
    expect(() => verifyAlert(headers, body, OTHER)).toThrow();
  });

  test('[S9] follows no redirect, and takes none for an answer', async () => {
    status(307, { location: url.replace('/hook', '/elsewhere') });
    expect((await whyNot(send())).why).toContain('HTTP 307');
    expect(received.map((request) => request.url)).toEqual(['/hook?key=in-the-address']);
  });

  test('[S9] says when the receiver wants it again, and nothing of what it answered', async () => {
    status(503, { 'retry-after': '120' });
    expect(await whyNot(send())).toEqual({ why: 'the target answered HTTP 503', retryAfterMs: 120_000 });
    status(500);
    expect(await whyNot(send())).toEqual({ why: 'the target answered HTTP 500', retryAfterMs: 0 });
  });

  test('[S9] does not wait past the timeout, and no failure names the address or the secret', async () => {
    answer = () => undefined;
    const silent = await whyNot(send([NEW], AbortSignal.timeout(100)));
    const refused = await whyNot(
      send([NEW], AbortSignal.timeout(5_000), 'http://127.0.0.1:1/hook?key=in-the-address'),
    );
    expect(silent.why).toBe('the receiver did not answer in time');
    expect(refused.why).toMatch(/^the receiver could not be reached/);
    for (const { why } of [silent, refused]) expect(why).not.toMatch(/in-the-address|127\.0\.0\.1|whsec/);
  });
});

describe('the webhook’s settings', () => {
  test('are an https address without credentials, or one of this machine', () => {
    const good = [
      'https://pager.example/x?y=1',
      'http://localhost:9/x',
      'http://127.0.0.1/',
      'http://[::1]:80/',
    ];
    const bad = [
      'http://pager.example/',
      'https://ann:pw@pager.example/',
      'ftp://pager.example/',
      'pager',
      '',
    ];
    expect(good.filter((text) => !isWebhookUrl(text))).toEqual([]);
    expect(bad.filter(isWebhookUrl)).toEqual([]);
  });

  test('[S2.10] refuse a secret that is none without repeating it', () => {
    for (const secret of [
      'whsec_c2hvcnQ=',
      'not base64 at all, and long enough to be one',
      '',
      `whsec_${'A'.repeat(200)}`,
    ])
      expect(parseWebhookSecret(secret)).toBeNull();
    const given = { HOLDFAST_ALERT_WEBHOOK_SECRET: 'whsec_c2hvcnQ=' };
    expect(() => readSettings(given, {})).toThrow(/HOLDFAST_ALERT_WEBHOOK_SECRET/);
    expect(() => readSettings(given, {})).not.toThrow(/c2hvcnQ/);
    const both = { HOLDFAST_ALERT_WEBHOOK_SECRET: `${NEW}, ${OLD}` };
    expect(readSettings(both, {}).alertWebhookSecrets).toEqual([bytesOf(NEW), bytesOf(OLD)]);
    const file = { alerts: { webhook: { url: 'https://pager.example/x' } } };
    expect(readSettings({}, file)).toMatchObject({ alertWebhookUrl: 'https://pager.example/x' });
  });
});
