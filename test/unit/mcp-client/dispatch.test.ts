import { SdkError, SdkErrorCode } from '@modelcontextprotocol/client';
import type { Transport } from '@modelcontextprotocol/client';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createDispatch } from '../../../src/mcp-client/dispatch.ts';
import type { Reply } from '../../../src/mcp-client/reply.ts';
import { holds } from '../../support/property.ts';

interface Sent {
  id?: string;
  method: string;
  params?: Record<string, unknown>;
}

/** A transport that does what the test says; `streams` are those of its requests, in order. */
function handDriven(closesToCancel: boolean) {
  const sent: Sent[] = [];
  const streams: { signal: AbortSignal; end: () => void }[] = [];
  const passedOn: unknown[] = [];
  const transport = {
    onmessage: (message: unknown) => void passedOn.push(message),
    start: () => Promise.resolve(),
    close: () => Promise.resolve(),
    send(message: Sent, options?: { requestSignal: AbortSignal; onRequestStreamEnd: () => void }) {
      sent.push(message);
      if (options) streams.push({ signal: options.requestSignal, end: options.onRequestStreamEnd });
      return Promise.resolve();
    },
  } as unknown as Transport & { onclose?: () => void };
  const dispatch = createDispatch(transport, { closesToCancel });
  const receive = (message: object) => transport.onmessage?.({ jsonrpc: '2.0', ...message } as never);
  return { dispatch, transport, sent, streams, passedOn, receive, close: () => transport.onclose?.() };
}

const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('a request under way', () => {
  it.each([
    ['modern HTTP closes its response stream and POSTs nothing', true, []],
    ['stdio and legacy HTTP send notifications/cancelled', false, ['notifications/cancelled']],
  ] as const)('that is cancelled: %s [M5.5] [M5.1]', async (_what, closesToCancel, said) => {
    const { dispatch, sent, streams } = handDriven(closesToCancel);
    const gone = new AbortController();
    const reply = dispatch.request('tools/call', { name: 't' }, { signal: gone.signal });
    await settled();
    gone.abort('idle');
    expect(await reply).toEqual({ kind: 'cancelled' });
    await settled();
    expect(sent.slice(1).map(({ method }) => method)).toEqual(said);
    if (!closesToCancel) expect(sent[1]?.params).toMatchObject({ requestId: sent[0]?.id, reason: 'idle' });
    expect(streams[0]?.signal.aborted).toBe(true);
  });

  it('over a connection that has closed was not sent [S5]', async () => {
    const { dispatch, sent, close } = handDriven(false);
    close();
    const reply = await dispatch.request(
      'tools/call',
      { name: 't' },
      { signal: new AbortController().signal },
    );
    expect(reply).toMatchObject({ kind: 'failure', failure: 'not_sent' });
    expect(sent).toEqual([]);
    expect(dispatch.isIdle).toBe(true);
  });

  it('that a transport at its end took no more was not sent, and the next meets no open connection [S5]', async () => {
    const { dispatch, transport, receive, sent } = handDriven(false);
    const before = dispatch.request('tools/call', { name: 't' }, { signal: new AbortController().signal });
    await settled();
    transport.send = () => Promise.reject(new SdkError(SdkErrorCode.NotConnected, 'it has ended'));
    const after = dispatch.request('tasks/get', {}, { signal: new AbortController().signal });
    expect(await after).toMatchObject({ kind: 'failure', failure: 'not_sent' });
    expect(dispatch.isOpen).toBe(false);
    // What it had answered before its end is still read.
    receive({ id: sent[0]?.id, result: {} });
    expect(await before).toMatchObject({ kind: 'result' });
  });

  it('has one end, whatever comes in which order; late answers are ignored and nobody else hears of them [M5.5]', async () => {
    const events = fc.array(
      fc.constantFrom('result', 'error', 'stream ends', 'cancel', 'progress', 'close'),
      { minLength: 1, maxLength: 6 },
    );
    const ends = {
      result: 'result',
      error: 'error',
      'stream ends': 'failure',
      cancel: 'cancelled',
      close: 'failure',
    };
    const checks: Promise<void>[] = [];
    holds(
      'mcp-client one end',
      events,
      (order) => {
        const { dispatch, streams, passedOn, receive, close } = handDriven(true);
        const gone = new AbortController();
        let told = 0;
        let endedAt = order.length;
        const id = dispatch.nextId();
        const onProgress = () => void (told += 1);
        const reply = dispatch.request('tools/call', {}, { signal: gone.signal, onProgress }, id);
        checks.push(
          (async () => {
            await Promise.resolve().then(() => undefined);
            order.forEach((event, place) => {
              if (event !== 'progress') endedAt = Math.min(endedAt, place);
              if (event === 'result') receive({ id, result: { place } });
              else if (event === 'error') receive({ id, error: { code: -1, message: String(place) } });
              else if (event === 'stream ends') streams[0]?.end();
              else if (event === 'cancel') gone.abort();
              else if (event === 'close') close();
              else
                receive({ method: 'notifications/progress', params: { progressToken: id, progress: place } });
            });
            const first = order.find((event) => event !== 'progress');
            const got: Reply | 'open' = await Promise.race([reply, settled().then(() => 'open' as const)]);
            expect(got === 'open' ? undefined : got.kind).toBe(first && ends[first]);
            expect(told).toBe(order.slice(0, endedAt).length);
            expect(passedOn).toEqual([]);
          })(),
        );
      },
      200,
    );
    await Promise.all(checks);
  });

  it('is lost at once when its stream or its connection ends, and a message about no request of ours goes on to the SDK [M6.3]', async () => {
    const { dispatch, streams, passedOn, receive, close } = handDriven(true);
    const { signal } = new AbortController();
    const [one, two] = [1, 2].map(() => dispatch.request('tasks/get', {}, { signal }));
    await settled();
    streams[0]?.end();
    expect(await one).toMatchObject({ kind: 'failure', failure: 'lost' });
    receive({ id: 7, result: {} });
    receive({ method: 'notifications/tools/list_changed', params: {} });
    receive({ method: 'notifications/progress', params: { progressToken: 'another’s', progress: 1 } });
    expect(passedOn).toHaveLength(3);
    expect(dispatch.isOpen).toBe(true);
    close();
    expect(await two).toMatchObject({ kind: 'failure', failure: 'lost' });
    expect(dispatch.isOpen).toBe(false);
  });

  it('never has the id of another, also after a reconnect [M6.3]', async () => {
    const ids: unknown[] = [];
    for (let connection = 0; connection < 3; connection += 1) {
      const { dispatch, sent } = handDriven(true);
      const { signal } = new AbortController();
      for (let n = 0; n < 5; n += 1) void dispatch.request('tools/list', {}, { signal });
      await settled();
      ids.push(...sent.map(({ id }) => id));
    }
    expect(new Set(ids).size).toBe(15);
  });
});
