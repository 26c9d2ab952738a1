/** The demo's chapters about streams: who wins when a caller gives up, and what a reader that does not read costs. */
import { createServer, get } from 'node:http';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import { systemClock } from '../../contract/clock.ts';
import { withFlowControl } from '../../gateway/http/flow-control.ts';
import { DEFAULT_LIMITS } from '../../gateway/limits.ts';
import { silentLog } from '../../gateway/log.ts';
import type { Chapter, Performance } from './chapter.ts';
import { callTool } from './tool-call.ts';
import { until } from './until.ts';
import { tapped } from './wiretap.ts';
import type { Wiretap } from './wiretap.ts';

const MIB = 1024 * 1024;
const NOTIFICATIONS = 1_000;
const MESSAGE_BYTES = 64 * 1024;

export const bothSidesOfARace: Chapter = async (performance) => {
  const posts = async () => (await performance.stage.chat.books())['posts'] ?? -1;
  const before = await posts();
  performance.say('who wins when an agent gives up a call: what goes over the wire');
  const wire = tapped(performance.stage.mcp);
  try {
    const isSilent = await cancelFirst(performance, wire, async () => (await posts()) > before);
    const isAnswered = await completionFirst(performance, wire);
    const effects = (await posts()) - before;
    return {
      chapter: 'both sides of a race',
      expected: 'who is first decides; each call one effect',
      seen: `cancel first: ${isSilent ? 'no response' : 'not as it should be'}; completion first: ${isAnswered ? 'it stands' : 'not as it should be'}`,
      effects,
      isAsExpected: isSilent && isAnswered && effects === 2,
    };
  } finally {
    wire.end();
  }
};

/** True if nothing came for the call that was given up, and its task went on. */
async function cancelFirst(
  { stage, say }: Performance,
  wire: Wiretap,
  isPosted: () => Promise<boolean>,
): Promise<boolean> {
  await stage.chat.behave('hold', 1);
  const message = { channel: 'team', text: 'Lunch?', idempotencyKey: 'race-1' };
  const leaving = new AbortController();
  const wasLeft = callTool(stage.mcp, 'post_message', message, { signal: leaving.signal }).then(
    () => false,
    () => true,
  );
  await until('the message is posted', isPosted);
  const id = wire.lastId('tools/call');
  say(`  → tools/call, id ${id}: the message is posted, not answered yet`);
  leaving.abort('nobody waits any more');
  const hasLeft = await wasLeft;
  say(`  → notifications/cancelled, id ${id}`);
  await stage.chat.release();
  const found = await callTool(stage.mcp, 'post_message', message);
  say(`  ← nothing for id ${id}; the same call, made again, finds its task: ${found.task.status}`);
  const isSilent = hasLeft && wire.wasGivenUp(id) && wire.responsesTo(id) === 0;
  return isSilent && found.task.status === 'completed';
}

/** True if the response came once, and the cancel after it changed nothing. */
async function completionFirst({ stage, say }: Performance, wire: Wiretap): Promise<boolean> {
  const message = { channel: 'team', text: 'Lunch!', idempotencyKey: 'race-2' };
  const { task } = await callTool(stage.mcp, 'post_message', message);
  const id = wire.lastId('tools/call');
  say(`  → tools/call, id ${id}  ← its response: ${task.status}`);
  await stage.mcp.notification({ method: 'notifications/cancelled', params: { requestId: id } });
  const read = await callTool(stage.mcp, 'task_get', { taskId: task.taskId ?? '' });
  say(
    `  → notifications/cancelled, id ${id}, too late: nothing is said to it, the task is ${read.task.status}`,
  );
  return wire.responsesTo(id) === 1 && read.task.status === 'completed';
}

/** One stream as the gateway serves it, with the bounds it ships with; the reader takes nothing until all was told. */
export const overloadedBuffer: Chapter = async ({ say }) => {
  const { url, tell, close } = await openStream();
  try {
    const reader = await new Promise<IncomingMessage>((resolve, reject) =>
      get(url, resolve).once('error', reject),
    );
    say('a reader of a gateway’s stream reads nothing, while 1,000 notifications of 64 KiB are told to it');
    for (let progress = 1; progress <= NOTIFICATIONS; progress += 1) {
      const params = { progressToken: 'p', progress, message: 'x'.repeat(MESSAGE_BYTES) };
      tell({ jsonrpc: '2.0', method: 'notifications/progress', params });
      await turn();
    }
    const receipt = 'r'.repeat(DEFAULT_LIMITS.streamBytesMax - 1024);
    tell({ jsonrpc: '2.0', id: 1, result: { structuredContent: { receipt } } });
    close.stream();
    const kept = await text(reader);
    const last = JSON.parse(kept.slice(kept.lastIndexOf('data: ') + 'data: '.length)) as {
      result?: {
        structuredContent: { receipt: string };
        _meta?: { 'holdfast/refetch'?: { dropped: number } };
      };
    };
    const told = NOTIFICATIONS * MESSAGE_BYTES;
    const dropped = last.result?._meta?.['holdfast/refetch']?.dropped ?? 0;
    const isWhole = last.result?.structuredContent.receipt === receipt;
    say(
      `  ${mib(kept.length)} of ${mib(told)} were kept, most of it by the two sockets; it reads at last: ${isWhole ? 'the response is whole' : 'the response is not whole'},`,
    );
    say(`  and says that what it was told is not all (dropped: ${dropped}), so read the task again`);
    return {
      chapter: 'an overloaded stream',
      expected: 'bounded; the response whole, and marked',
      seen: `${mib(kept.length)} of ${mib(told)} kept, response ${isWhole ? 'whole' : 'lost'}, ${dropped > 0 ? 'marked' : 'not marked'}`,
      effects: 0,
      isAsExpected: isWhole && dropped > 0 && kept.length < told / 2,
    };
  } finally {
    await close.server();
  }
};

const mib = (bytes: number): string => `${(bytes / MIB).toFixed(1)} MiB`;

async function openStream() {
  let source: ReadableStreamDefaultController<Uint8Array> | null = null;
  const server = createServer((_request, outgoing) => {
    const body = new ReadableStream<Uint8Array>({ start: (controller) => void (source = controller) });
    const headers = { 'content-type': 'text/event-stream' };
    const parts = { limits: DEFAULT_LIMITS, clock: systemClock, log: silentLog };
    const bounded = withFlowControl(new Response(body, { headers }), outgoing, parts);
    outgoing.writeHead(200, headers);
    Readable.fromWeb(bounded.body as Parameters<typeof Readable.fromWeb>[0]).pipe(outgoing);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tell: (message: object) =>
      source?.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(message)}\n\n`)),
    close: {
      stream: () => source?.close(),
      server: async () => {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      },
    },
  };
}
