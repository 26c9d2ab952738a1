import { SdkError, SdkErrorCode, SdkHttpError } from '@modelcontextprotocol/client';
import { expect, it } from 'vitest';
import { ActionFailure } from '../../../src/contract/handlers.ts';
import { failureOfError, replyOfSendError } from '../../../src/mcp-client/reply.ts';

const http = (status: number, body: unknown = '') =>
  new SdkHttpError(SdkErrorCode.ClientHttpNotImplemented, 'no', {
    status,
    statusText: '',
    text: typeof body === 'string' ? body : JSON.stringify(body),
  });
const rpc = (code: number, data?: object) => ({ jsonrpc: '2.0', id: 1, error: { code, message: 'm', data } });
const fetchFailed = (code: string, syscall = 'connect') =>
  new TypeError('fetch failed', { cause: Object.assign(new Error(code), { code, syscall }) });

it.each([
  ['a refused connection', fetchFailed('ECONNREFUSED'), 'not_sent'],
  ['an unknown name', fetchFailed('ENOTFOUND', 'getaddrinfo'), 'not_sent'],
  ['no connection', new SdkError(SdkErrorCode.NotConnected, 'Not connected'), 'not_sent'],
  ['a session of 2025 that the server forgot', http(404, rpc(-32_001)), 'not_sent'],
  ['a reset', fetchFailed('ECONNRESET', 'read'), 'lost'],
  ['anything unclassified', new Error('boom'), 'lost'],
  ['a gateway time-out of some proxy', http(504), 'lost'],
  ['503 without Retry-After', http(503), 'lost'],
  ['500', http(500, rpc(-32_603)), 'lost'],
  ['408', http(408), 'lost'],
  ['a request that a closing server cut', http(499), 'lost'],
  ['429', http(429), 'told_later'],
  ['401', http(401, 'no token'), 'refused'],
  ['404 of another kind', http(404, 'nothing here'), 'refused'],
] as const)('%s proves: %s [S5.1] [M6.3]', (_what, error, failure) => {
  expect(replyOfSendError(error)).toMatchObject({ kind: 'failure', failure });
});

it.each([
  ['404, whatever its words', http(404, rpc(-32_600)), 'not_sent'],
  ['400 in words about the session', http(400, rpc(-32_000, { why: 'No valid session ID' })), 'not_sent'],
  ['400 for a text', http(400, 'bad'), 'refused'],
] as const)('in a session of 2025, %s proves: %s [S5.1] [M8.3]', (_what, error, failure) => {
  expect(replyOfSendError(error, true)).toMatchObject({ kind: 'failure', failure });
});

it('what is said about a task of the session is no word about the session [M8.3]', () => {
  const reply = replyOfSendError(http(400, rpc(-32_602, { why: 'no such task in this session' })), true);
  expect(reply).toMatchObject({ kind: 'error', error: { code: -32_602 } });
});

it('a JSON-RPC error under 4xx is the server’s answer, and Retry-After its own word [M6.3]', () => {
  expect(replyOfSendError(http(400, rpc(-32_020)))).toMatchObject({
    kind: 'error',
    error: { code: -32_020 },
  });
  const later = new ActionFailure({
    kind: 'rateLimited',
    code: 'rate_limited',
    message: 'm',
    retryAfterMs: 2_000,
  });
  expect(replyOfSendError(later)).toMatchObject({ failure: 'told_later', retryAfterMs: 2_000 });
});

it('the server’s own trouble proves nothing about a call; a refused message or parameter does [M6.3]', () => {
  const of = (code: number, data?: object) => failureOfError({ code, message: 'm', data });
  expect([of(-32_602), of(-32_601), of(-32_021)]).toEqual(['refused', 'refused', 'refused']);
  expect([of(-32_603), of(-32_000), of(1)]).toEqual(['lost', 'lost', 'lost']);
  expect(of(-32_000, { code: 'payload_too_large' })).toBe('refused');
  expect(of(-32_603, { code: 'internal_error' })).toBe('lost');
});
