import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { describe, expect, test } from 'vitest';
import { classifyFailure, fetchFailure } from '../../src/contract/classify-failure.ts';
import { ActionFailure } from '../../src/contract/handlers.ts';

const coded = (code: string, extra: object = {}) =>
  Object.assign(new Error(`connect ${code}`), { code, ...extra });
const fetchFailed = (cause: unknown) => new TypeError('fetch failed', { cause });
const kindOf = (error: unknown) => classifyFailure(error).kind;

/** A port on which nothing listens: it was ours a moment ago. */
async function closedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** A server that reads the request and hangs up without a word. */
async function withHangingUp<T>(use: (port: number) => Promise<T>): Promise<T> {
  const server = createServer((socket) => socket.once('data', () => socket.resetAndDestroy()));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  try {
    return await use((server.address() as AddressInfo).port);
  } finally {
    server.close();
  }
}

describe('the classification of a failure', () => {
  test('takes a handler at its word [S5]', () => {
    expect(classifyFailure(ActionFailure.notSent('no route'))).toEqual({
      kind: 'notApplied',
      code: 'attempt_failed',
      message: 'no route',
    });
    expect(classifyFailure(ActionFailure.rateLimited('later', 1500))).toMatchObject({
      kind: 'rateLimited',
      retryAfterMs: 1500,
    });
    expect(
      classifyFailure(ActionFailure.permanent('no such account', 'no_account', { field: 'to' })),
    ).toEqual({
      kind: 'permanent',
      code: 'no_account',
      message: 'no such account',
      details: { field: 'to' },
    });
  });

  test('a refused connection proves that nothing was sent, as fetch really throws it [S5]', async () => {
    const error: unknown = await fetch(`http://127.0.0.1:${await closedPort()}`, {
      method: 'POST',
      body: '{}',
    }).catch((e: unknown) => e);
    expect(classifyFailure(error)).toMatchObject({ kind: 'notApplied', code: 'attempt_failed' });
  });

  test('a connection reset after the request was sent proves nothing [S5]', async () => {
    const error = await withHangingUp((port) =>
      fetch(`http://127.0.0.1:${port}`, { method: 'POST', body: '{}' }).catch((e: unknown) => e),
    );
    expect(classifyFailure(error)).toMatchObject({ kind: 'unknown', code: 'outcome_unknown' });
  });

  test.each(['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN'])(
    '%s proves that nothing was sent, alone or in fetch’s wrapper [S5]',
    (code) => {
      expect(kindOf(coded(code))).toBe('notApplied');
      expect(kindOf(fetchFailed(coded(code)))).toBe('notApplied');
      const both = Object.assign(new AggregateError([coded(code), coded(code)]), { code });
      expect(kindOf(both)).toBe('notApplied');
      expect(kindOf(fetchFailed(both))).toBe('notApplied');
    },
  );

  test('one member of unknown outcome makes an aggregate unknown, whatever its code says [S5]', () => {
    const mixed = Object.assign(new AggregateError([coded('ECONNREFUSED'), coded('ETIMEDOUT')]), {
      code: 'ECONNREFUSED',
    });
    expect(kindOf(mixed)).toBe('unknown');
    expect(kindOf(fetchFailed(mixed))).toBe('unknown');
    expect(kindOf(new AggregateError([]))).toBe('unknown');
  });

  test.each([
    ['ECONNRESET', coded('ECONNRESET')],
    ['EPIPE', coded('EPIPE')],
    ['ETIMEDOUT', coded('ETIMEDOUT')],
    ['undici’s headers timeout', fetchFailed(coded('UND_ERR_HEADERS_TIMEOUT'))],
    ['undici’s socket error', fetchFailed(coded('UND_ERR_SOCKET'))],
    ['an abort', new DOMException('aborted', 'AbortError')],
    ['a timeout', new DOMException('timed out', 'TimeoutError')],
    ['a refusal of what UDP had sent', coded('ECONNREFUSED', { syscall: 'recvmsg' })],
    [
      'a refusal in a wrapper of someone’s own, who may have sent before',
      new Error('gave up after 3 tries', { cause: coded('ECONNREFUSED') }),
    ],
    ['a TypeError', new TypeError('x is undefined')],
    ['a string', 'boom'],
    ['nothing at all', undefined],
    ['an object', { code: 'ECONNREFUSED' }],
  ])('%s is an unknown outcome [S5]', (_name, error) => {
    expect(classifyFailure(error)).toMatchObject({ kind: 'unknown', code: 'outcome_unknown' });
  });

  test('an error that is its own cause ends [S5]', () => {
    const error = fetchFailed(undefined);
    error.cause = error;
    expect(kindOf(error)).toBe('unknown');
  });

  test('keeps at most 2,000 characters of a message and no stack [S5]', () => {
    const failure = classifyFailure(new Error('x'.repeat(10_000)));
    expect(failure.message).toHaveLength(2_000);
    expect(failure.message.endsWith('…')).toBe(true);
    expect(Object.keys(failure).sort()).toEqual(['code', 'kind', 'message']);
    expect(JSON.stringify(classifyFailure(new Error('short')))).not.toContain('.test.ts');
  });

  test('a failure declared wrongly proves nothing [S5]', () => {
    const declared = new ActionFailure({ kind: 'certainly' as 'unknown', code: 'x', message: 'm' });
    expect(classifyFailure(declared)).toEqual({ kind: 'unknown', code: 'outcome_unknown', message: 'm' });
    const hostile = new ActionFailure({
      kind: 'permanent',
      code: 'x',
      message: 'm',
      details: { at: new Date() as never },
    });
    expect(classifyFailure(hostile)).toEqual({ kind: 'permanent', code: 'x', message: 'm' });
  });

  test('an error that can not even be read proves nothing [S5]', () => {
    const trap = (): never => {
      throw new Error('trap');
    };
    const unreadable = Object.defineProperty(new Error('x'), 'message', { get: trap });
    for (const error of [
      new Proxy({}, { get: trap, getPrototypeOf: trap }),
      unreadable,
      Object.assign(new Error('x'), { name: 'ActionFailure', failure: null }),
      Object.assign(new Error('x'), { message: { toString: trap } }),
    ])
      expect(kindOf(error)).toBe('unknown');
  });

  test('details too large for the engine are left out, a code that says nothing is named [S5]', () => {
    const huge = ActionFailure.permanent('m', 'x', { text: 'y'.repeat(16_384) });
    expect(classifyFailure(huge)).toEqual({ kind: 'permanent', code: 'x', message: 'm' });
    const kept = ActionFailure.permanent('m', '', { text: 'y'.repeat(16_000) });
    expect(classifyFailure(kept)).toMatchObject({ code: 'permanent_failure', details: kept.failure.details });
  });

  test('a message is cleaned before it is cut, so that no part of a secret stays [S2.10]', () => {
    const secret = '4111222233334444';
    const clean = (text: string) => text.replaceAll(secret, '[redacted]');
    const failure = classifyFailure(new Error('x'.repeat(1_990) + secret), clean);
    expect(failure.message).not.toContain('4111');
  });
});

const NOW = Date.parse('2026-01-01T00:00:00Z');
const answer = (status: number, retryAfter?: string) =>
  fetchFailure(
    new Response(null, { status, headers: retryAfter === undefined ? {} : { 'Retry-After': retryAfter } }),
    NOW,
  );

describe('the failure an HTTP response stands for', () => {
  test.each([200, 201, 204, 304])('%i is no failure [S5]', (status) => {
    expect(answer(status)).toBeNull();
  });

  test.each([400, 401, 403, 404, 409, 422])('%i is permanent [S5]', (status) => {
    expect(answer(status)).toMatchObject({ kind: 'permanent', details: { status } });
  });

  test.each([429, 503])(
    '%i with Retry-After is the target’s own "later", in seconds or as a date [S5]',
    (status) => {
      expect(answer(status, '7')).toMatchObject({ kind: 'rateLimited', retryAfterMs: 7_000 });
      expect(answer(status, 'Thu, 01 Jan 2026 00:01:00 GMT')).toMatchObject({
        kind: 'rateLimited',
        retryAfterMs: 60_000,
      });
      expect(answer(status, 'Wed, 31 Dec 2025 00:00:00 GMT')).toMatchObject({
        kind: 'rateLimited',
        retryAfterMs: 0,
      });
      expect(answer(status, '99999999')).toMatchObject({ kind: 'rateLimited', retryAfterMs: 86_400_000 });
    },
  );

  test.each(['', 'soon', '-1', '1.5', '2026-01-01', '2'.repeat(11)])(
    'a Retry-After of %j says nothing [S5]',
    (value) => {
      expect(answer(503, value)).toMatchObject({ kind: 'unknown' });
    },
  );

  test.each([408, 429, 500, 502, 503, 504, 520])(
    '%i without Retry-After is unknown: a proxy may have made it [S5]',
    (status) => {
      expect(answer(status)).toMatchObject({ kind: 'unknown', code: 'outcome_unknown' });
    },
  );

  test.each([500, 502, 504])('%i stays unknown even with Retry-After [S5]', (status) => {
    expect(answer(status, '5')).toMatchObject({ kind: 'unknown' });
  });
});
