/** The connection over each transport and era, against a server of another's that misbehaves on request. */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { UpstreamReply } from '../../src/upstream/upstream.ts';
import { connectionStage, isAlive, SECRET, threeCalls } from '../support/upstream-stage.ts';
import type { ConnectionStage, Transport } from '../support/upstream-stage.ts';
import { describeUpstream } from '../support/upstream-suite.ts';
import { rawMessage } from '../support/mcp-messages.ts';
import { linesOf, receivedIn } from '../support/upstream-server.ts';
import type { Era, Received } from '../support/upstream-server.ts';

const NEVER = new AbortController().signal;
const LEGS: readonly [Transport, Era][] = [
  ['stdio', 'modern'],
  ['stdio', 'legacy'],
  ['http', 'modern'],
  ['http', 'legacy'],
];

for (const [transport, era] of LEGS)
  describeUpstream(`an upstream over ${transport}, ${era}`, () => connectionStage(transport, { era }));

const stages: ConnectionStage[] = [];
afterEach(async () => {
  for (const each of stages.splice(0)) await each.close();
});
const openStage = async (...args: Parameters<typeof connectionStage>): Promise<ConnectionStage> => {
  const stage = await connectionStage(...args);
  stages.push(stage);
  return stage;
};

const callsOf = ({ received }: ConnectionStage, tool: string): Received[] =>
  received.filter(({ message }) => message.method === 'tools/call' && message.params?.name === tool);
/** The requests whose cancel the server was told of: by notification, over 2026-07-28's HTTP by the closed stream. */
const cancelsOf = ({ received }: ConnectionStage, saysWithStream: boolean): unknown[] =>
  received.flatMap(({ message, closed }) => {
    if (saysWithStream) return closed === undefined ? [] : [closed];
    return message.method === 'notifications/cancelled' ? [message.params?.requestId] : [];
  });

describe.each(LEGS)('over %s, %s', (transport, era) => {
  test('[M8.3] [case 33] a cancel goes to the right server, under its own id, past requests that have no answer yet', async () => {
    const [first, second] = [await openStage(transport, { era }), await openStage(transport, { era })];
    const leaving = new AbortController();
    const hangs = ({ upstream }: ConnectionStage, signal = NEVER) =>
      upstream.call({ tool: 'hangs', args: {}, signal });
    const [kept, left, other] = [hangs(first), hangs(first, leaving.signal), hangs(second)];
    await first.until('both calls', () => callsOf(first, 'hangs').length === 2);
    await second.until('the other call', () => callsOf(second, 'hangs').length === 1);
    leaving.abort('the caller left');
    expect(await left).toMatchObject({ kind: 'in_doubt' });
    const saysWithStream = transport === 'http' && era === 'modern';
    await threeCalls(() => first.upstream.call({ tool: 'echo', args: {}, signal: NEVER }));
    expect(cancelsOf(first, saysWithStream)).toEqual([callsOf(first, 'hangs')[1]?.message.id]);
    for (const stage of [second, ...(saysWithStream ? [first] : [])])
      expect(cancelsOf(stage, false)).toEqual([]);
    expect(cancelsOf(second, true)).toEqual([]);
    // Both are still under way: the cancel waited for nobody.
    expect(await Promise.race([kept, other, Promise.resolve('under way')])).toBe('under way');
  });

  test('[M5.4] closing tells no server that a call was cancelled; the call ends in doubt', async () => {
    const stage = await openStage(transport, { era });
    const open = stage.upstream.call({ tool: 'hangs', args: {}, signal: NEVER });
    await stage.until('the call', () => callsOf(stage, 'hangs').length === 1);
    await stage.upstream.close();
    expect(await open).toMatchObject({ kind: 'in_doubt' });
    expect(stage.received.some(({ message }) => message.method === 'notifications/cancelled')).toBe(false);
  });

  test('progress is the call’s own', async () => {
    const { upstream } = await openStage(transport, { era });
    const seen: number[] = [];
    const onProgress = ({ progress }: { progress: number }) => void seen.push(progress);
    await upstream.call({ tool: 'steps', args: {}, signal: NEVER, onProgress });
    expect(seen).toEqual([1, 2]);
  });

  test('[M1.6] a number that can not be kept exactly is withheld, never rounded; the rest of the answer stands', async () => {
    const { upstream } = await openStage(transport, { era });
    const reply = (await upstream.call({ tool: 'large', args: {}, signal: NEVER })) as Answer;
    expect(reply).toMatchObject({ kind: 'answer', isError: false, structured: null });
    expect(JSON.stringify(reply)).toContain('/structuredContent/amount can not be kept exactly');
    expect(JSON.stringify(reply)).not.toContain('90071992547409');
    expect(reply.content[0]).toEqual({ type: 'text', text: 'large' });
  });

  test('[S2.10] secrets of its address are in no log and no error', async () => {
    const stage = await openStage(transport, { era });
    const { upstream } = stage;
    const replies: UpstreamReply[] = [];
    for (const tool of ['echo', 'refuses', 'troubled', 'apply_and_die'])
      replies.push(await upstream.call({ tool, args: {}, signal: NEVER }));
    await upstream.close();
    replies.push(await upstream.call({ tool: 'echo', args: {}, signal: NEVER }));
    expect(JSON.stringify(replies.slice(1))).not.toContain(SECRET);
    expect(stage.logged.join('\n')).not.toContain(SECRET);
    if (transport === 'stdio') expect(stage.logged.join('\n')).toContain('the secret is [redacted]');
    else expect(stage.received[1]?.headers?.authorization).toBe(`Bearer ${SECRET}`);
  });

  test('a form in mid-call is dismissed where the server may ask, and the call goes on', async () => {
    const { upstream } = await openStage(transport, { era });
    const reply = await upstream.call({ tool: 'asks', args: {}, signal: NEVER });
    expect(reply).toMatchObject({ kind: 'answer', structured: { told: { sure: { action: 'cancel' } } } });
  });

  test('a task is asked for where the tool needs one, or where it may and is configured so', async () => {
    const asTask = (tool: string) => tool === 'may_work';
    const [plain, configured] = [
      await openStage(transport, { era }),
      await openStage(transport, { era }, { asTask }),
    ];
    const call = ({ upstream }: ConnectionStage, tool: string) =>
      upstream.call({ tool, args: {}, signal: NEVER });
    expect(await call(plain, 'works')).toMatchObject({ kind: 'task' });
    expect(await call(configured, 'may_work')).toMatchObject({ kind: 'task' });
    await call(configured, 'echo');
    const asked = (stage: ConnectionStage, tool: string) => callsOf(stage, tool)[0]?.message.params?.task;
    expect(asked(plain, 'works')).toEqual(era === 'legacy' ? {} : undefined);
    expect(asked(configured, 'echo')).toBeUndefined();
    if (era === 'legacy') expect(await call(plain, 'may_work')).toMatchObject({ kind: 'answer' });
  });
});

type Answer = Extract<UpstreamReply, { kind: 'answer' }>;

describe('over http', () => {
  test('an argument that the tool wants as a header too is sent as one, once the tool was listed', async () => {
    const stage = await openStage('http', { era: 'modern' });
    await stage.upstream.tools(NEVER);
    await stage.upstream.call({ tool: 'routed', args: { region: 'eu' }, signal: NEVER });
    expect(callsOf(stage, 'routed')[0]?.headers?.['mcp-param-region']).toBe('eu');
  });

  test('headers of one call are sent with it alone, and never replace the address’s own', async () => {
    const stage = await openStage('http', { era: 'modern' });
    const headers = { 'x-key': 'op-1', authorization: 'Bearer other' };
    await stage.upstream.call({ tool: 'echo', args: {}, signal: NEVER, headers });
    await stage.upstream.call({ tool: 'echo', args: {}, signal: NEVER });
    const [first, second] = callsOf(stage, 'echo').map((call) => call.headers);
    expect(first).toMatchObject({ 'x-key': 'op-1', authorization: `Bearer ${SECRET}` });
    expect(second?.['x-key']).toBeUndefined();
  });

  test('[S5] a connection that is cut before anything was read may all the same have been read: in doubt', async () => {
    const stage = await openStage('http', { era: 'modern' });
    await stage.upstream.call({ tool: 'echo', args: {}, signal: NEVER });
    stage.http?.cutBeforeReading(1);
    expect(await stage.upstream.call({ tool: 'apply', args: { key: 'k' }, signal: NEVER })).toMatchObject({
      kind: 'in_doubt',
    });
    expect(await stage.upstream.call({ tool: 'apply', args: { key: 'k' }, signal: NEVER })).toMatchObject({
      kind: 'answer',
    });
    expect(stage.effects('k')).toBe(1);
  });

  test('[S5] a refused connection is proof that nothing was sent', async () => {
    const stage = await openStage('http', { era: 'modern' });
    await stage.upstream.call({ tool: 'echo', args: {}, signal: NEVER });
    await stage.http?.close();
    expect(await stage.upstream.call({ tool: 'apply', args: {}, signal: NEVER })).toMatchObject({
      kind: 'not_sent',
    });
    await stage.http?.restart().catch(() => undefined);
  });
});

describe('over stdio', () => {
  test.each(['dies', 'says nothing'] as const)(
    'a server of 2025-11-25 that %s before initialize is served',
    async (atProbe) => {
      const timeouts = { openMs: 6_000 };
      const { upstream } = await openStage('stdio', { era: 'legacy', atProbe }, { timeouts });
      expect(await upstream.call({ tool: 'echo', args: {}, signal: NEVER })).toMatchObject({
        kind: 'answer',
      });
    },
  );

  test('a command that does not exist is not sent, and says so; a circle of them is not spun', async () => {
    const address = { command: 'no-such-command-anywhere' };
    const { upstream } = await openStage('stdio', { era: 'modern' }, { address });
    const call = () => upstream.call({ tool: 'echo', args: {}, signal: NEVER });
    expect(await call()).toMatchObject({ kind: 'not_sent', message: expect.stringContaining('not found') });
    let reply = await call();
    for (let tries = 0; tries < 10 && !('retryAfterMs' in reply); tries += 1) reply = await call();
    expect(reply).toMatchObject({ kind: 'not_sent', retryAfterMs: expect.any(Number) });
  });

  test('one that never answers its handshake is ended when we close, and nothing waits for it any longer', async () => {
    const stage = await openStage(
      'stdio',
      { era: 'modern', atProbe: 'says nothing' },
      { timeouts: { openMs: 600_000, controlMs: 600_000, closeMs: 200 } },
    );
    const read = expect(stage.upstream.tools(NEVER)).rejects.toThrow();
    await stage.until('its first question', () => stage.received.length > 0);
    const pid = stage.pid();
    await stage.upstream.close();
    await read;
    await stage.until('its end', () => !isAlive(pid));
  });

  test('a server that heeds neither the end of its stdin nor SIGTERM is killed when we close', async () => {
    const timeouts = { closeMs: 200 };
    const stage = await openStage('stdio', { era: 'modern', stays: true }, { timeouts });
    await stage.upstream.call({ tool: 'echo', args: {}, signal: NEVER });
    const pid = stage.pid();
    expect(isAlive(pid)).toBe(true);
    await stage.upstream.close();
    expect(isAlive(pid)).toBe(false);
  });
});

test('a server that heeds nothing ends all the same when the process that started it is killed', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'holdfast-upstream-'));
  const script = join(import.meta.dirname, '../support/upstream-stdio-gateway.ts');
  const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
  const servers = JSON.stringify({ first: { dir, era: 'modern', stays: true } });
  const parent = spawn(process.execPath, [...flags, script, servers], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  const message = rawMessage({ method: 'tools/call', params: { name: 'first_hangs', arguments: {} } });
  parent.stdin.write(`${JSON.stringify(message)}\n`);
  const isCalled = () => receivedIn(dir).some((each) => each.message.method === 'tools/call');
  await vi.waitFor(() => expect(isCalled()).toBe(true), { timeout: 20_000 });
  const pid = Number(linesOf(join(dir, 'pid')).at(-1));
  parent.kill('SIGKILL');
  await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 20_000 });
  rmSync(dir, { recursive: true, force: true });
});
