/** Safe tools of other servers, called through a gateway without a task. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Gateway } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import { answerOf, envelope, messagesOf, post } from '../support/mcp-messages.ts';
import { RawStdio } from '../support/raw-stdio.ts';
import { receivedIn } from '../support/upstream-server.ts';
import type { Received } from '../support/upstream-server.ts';
import { connectionStage } from '../support/upstream-stage.ts';
import type { ConnectionStage } from '../support/upstream-stage.ts';
import { directTools } from '../support/upstream-tools.ts';

const call = (name: string, args: object = {}, id: string | number = 101) => ({
  ...{ method: 'tools/call', id },
  params: { name, arguments: args },
});
const callsOf = (received: Received[], tool: string): Received[] =>
  received.filter(({ message }) => message.params?.name === tool);
const cancelsOf = (received: Received[]): unknown[] =>
  received.flatMap(({ message, closed }) =>
    message.method === 'notifications/cancelled' ? [message.params?.requestId] : (closed ?? []),
  );

describe.each(['stdio', 'http'] as const)('a gateway over HTTP before servers over %s', (transport) => {
  let stages: [ConnectionStage, ConnectionStage];
  let gateway: Gateway;
  let url: string;
  beforeEach(async () => {
    const open = () => connectionStage(transport, { era: 'modern' });
    stages = [await open(), await open()];
    const [first, second] = stages;
    ({ gateway } = drivenGateway({
      tools: [...directTools('first', first.upstream), ...directTools('second', second.upstream)],
    }));
    url = `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;
  });
  afterEach(async () => {
    await gateway.close();
    for (const stage of stages) await stage.close();
  });

  test('[M8.3] [case 33] a caller who leaves call 101 ends the request of the right server under its own id', async () => {
    const [first, second] = stages;
    const leaving = new AbortController();
    const ending = async (name: string, id: number, signal: AbortSignal | null = null): Promise<string> => {
      try {
        return await (await post(url, call(name, {}, id), { signal })).text();
      } catch {
        return signal?.aborted ? 'left' : 'cut';
      }
    };
    const left = ending('first_hangs', 101, leaving.signal);
    const others = [ending('second_hangs', 101), ending('first_hangs', 102)];
    await first.until('both calls', () => callsOf(first.received, 'hangs').length === 2);
    await second.until('the other call', () => callsOf(second.received, 'hangs').length === 1);
    const own = callsOf(first.received, 'hangs').map(({ message }) => message.id);
    leaving.abort();
    expect(await Promise.race([left, ...others])).toBe('left');
    await first.until('the cancel', () => cancelsOf(first.received).length > 0);
    expect(cancelsOf(first.received)).toHaveLength(1);
    expect(own).toContain(cancelsOf(first.received)[0]);
    expect(own).not.toContain(101);
    expect(cancelsOf(second.received)).toEqual([]);
  });

  test('the answer is the server’s own, an error too, and so is its progress; no task is made of it', async () => {
    const answerMeta = { own: 'kept', 'holdfast/task': { taskId: 'forged' } };
    const answer = await answerOf(await post(url, call('first_echo', { text: 'hi', answerMeta })));
    expect(answer.result).toMatchObject({
      structuredContent: { args: { text: 'hi' } },
      _meta: { own: 'kept' },
    });
    expect(answer.result?._meta).not.toHaveProperty('holdfast/task');
    const failed = await answerOf(await post(url, call('first_fails')));
    expect(failed.result).toMatchObject({ isError: true, content: [{ type: 'text', text: 'it failed' }] });
    const message = { ...call('first_steps'), meta: { progressToken: 0 } };
    const told = (await messagesOf(await post(url, message))).filter(({ method }) => method !== undefined);
    expect(told[0]?.params).toMatchObject({ progressToken: 0, progress: 1, message: 'step 1' });
  });

  test('[M1.2] arguments that do not fit never reach the server; a refusal of the server’s is told as one', async () => {
    const wrong = await answerOf(await post(url, call('first_echo', { text: 7 })));
    expect(wrong.result).toMatchObject({
      isError: true,
      structuredContent: {
        error: {
          code: 'invalid_arguments',
          details: { issues: [{ message: expect.stringContaining('text') }] },
        },
      },
    });
    expect(stages[0].received).toEqual([]);
    const refused = await answerOf(await post(url, call('first_refuses')));
    expect(refused.result?.structuredContent).toMatchObject({ error: { code: 'permanent_failure' } });
  });

  test('a warm list asks no server', async () => {
    const listed = await answerOf(await post(url, { method: 'tools/list' }));
    expect(listed.result?.tools).toHaveLength(14 + 4);
    expect(stages.map(({ received }) => received)).toEqual([[], []]);
  });
});

test('[M8.3] [case 33] over stdio on both sides, the cancel of 101 reaches its own server alone, under that server’s id', async () => {
  const dirs = [0, 1].map(() => mkdtempSync(join(tmpdir(), 'holdfast-upstream-'))) as [string, string];
  const [first, second] = dirs;
  const gateway = new RawStdio({}, 'upstream-stdio-gateway.ts', {
    first: { dir: first, era: 'legacy' },
    second: { dir: second, era: 'legacy' },
  });
  try {
    for (const message of [call('first_hangs'), call('first_hangs', {}, 102), call('second_hangs', {}, 103)])
      gateway.send(message);
    await vi.waitFor(
      () => {
        expect(callsOf(receivedIn(first), 'hangs')).toHaveLength(2);
        expect(callsOf(receivedIn(second), 'hangs')).toHaveLength(1);
      },
      { timeout: 20_000 },
    );
    const params = { requestId: 101, _meta: envelope() };
    gateway.write({ jsonrpc: '2.0', method: 'notifications/cancelled', params });
    await vi.waitFor(() => expect(cancelsOf(receivedIn(first))).toHaveLength(1), { timeout: 20_000 });
    const own = callsOf(receivedIn(first), 'hangs').map(({ message }) => message.id);
    expect(own).toContain(cancelsOf(receivedIn(first))[0]);
    expect(cancelsOf(receivedIn(second))).toEqual([]);
    // The servers' stderr and stray lines never reach the protocol.
    expect((await gateway.ask(call('second_echo', {}, 104))).result).toMatchObject({ content: [{}] });
    expect(gateway.answersTo(101)).toEqual([]);
  } finally {
    await gateway.close();
    for (const dir of dirs) rmSync(dir, { recursive: true, force: true });
  }
});
