/** What happens beyond the bounds: the typed answers with when to come back, and readers that do not read (M6.1, M7.2). */
import { until } from '../../src/cli/demo/until.ts';
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import { FloodStage, progressIn, tool } from '../support/flood-stage.ts';
import type { StalledRun } from '../support/flood-stage.ts';
import { answerOf, post } from '../support/mcp-messages.ts';
import type { RpcResponse } from '../support/mcp-messages.ts';
import { jsonBlock, measured, table } from './page.ts';
import type { Pages } from './page.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const READERS = 50;
const NOTIFICATIONS = 1_000;
const MESSAGE_BYTES = 64 * KIB;
const STREAM_BYTES_MAX = 256 * KIB;
const STALLED_MS = 1_000;

export async function overload(): Promise<Pages> {
  const refusals = [await tooManyOpen(), await tooManyASecond()];
  const stalled = await stalledReaders();
  const marked = await markedReader();
  const cut = await cutReader();
  return { 'overload.md': page({ refusals, stalled, marked, cut }) };
}

interface Refusal {
  title: string;
  status: number;
  retryAfter: string | null;
  body: RpcResponse;
}

async function refused(
  title: string,
  limits: Partial<GatewayLimits>,
  overrun: (url: string, driven: ReturnType<typeof drivenGateway>) => Promise<Response>,
): Promise<Refusal> {
  const driven = drivenGateway({ limits });
  try {
    const url = `${(await driven.gateway.serveHttp({ port: 0 })).url}/mcp`;
    const response = await overrun(url, driven);
    const { status, headers } = response;
    const body = await answerOf(response);
    const details = body.error?.data?.['details'] as { retryAfterMs: number };
    details.retryAfterMs = Math.ceil(details.retryAfterMs / 1_000) * 1_000; // what is left of a second
    return { title, status, retryAfter: headers.get('retry-after'), body };
  } finally {
    await driven.gateway.close();
  }
}

const tooManyOpen = () =>
  refused('A call more than may be open', { openCallsMax: 1 }, async (url, { client }) => {
    const left = new AbortController();
    const open = post(url, tool('transfer', { to: 'bob', amount: 5 }), { signal: left.signal });
    await until('the first call waits', async () => client.openWaits === 1);
    const response = await post(url, tool('transfer', { to: 'eve', amount: 1 }));
    left.abort();
    await open.then((response) => response.text()).catch(() => undefined); // left on purpose
    return response;
  });

const tooManyASecond = () =>
  refused('Calls faster than the limit', { callsPerSecondMax: 1 }, async (url) => {
    const answers = await Promise.all(Array.from({ length: 4 }, () => post(url, tool('open_tasks'))));
    return answers.find(({ status }) => status === 429) as Response;
  });

interface Stalled extends StalledRun {
  progress: RpcResponse[];
  response: RpcResponse;
}

async function stalledReaders(): Promise<Stalled> {
  const stage = await FloodStage.open({ streamBytesMax: STREAM_BYTES_MAX, stalledReaderMs: 600_000 });
  try {
    const readers = Array.from({ length: READERS }, (_each, index) => stage.call(index));
    const run = await stage.stall(readers, NOTIFICATIONS, MESSAGE_BYTES);
    await stage.answer('release', { result: { receipt: 'r' } });
    const [late] = readers as [(typeof readers)[number]];
    late.read();
    await until('one reads at last', async () => late.messages.at(-1)?.result !== undefined);
    return { ...run, progress: progressIn(late), response: late.messages.at(-1) as RpcResponse };
  } finally {
    await stage.close();
  }
}

/** Its response has room only in place of the progress that waits. */
async function markedReader(): Promise<unknown> {
  const stage = await FloodStage.open({ streamBytesMax: MESSAGE_BYTES });
  try {
    const slow = stage.call('slow');
    await stage.whenWaiting(1);
    await stage.flood(200, 60_000);
    await stage.answer('release', { result: { receipt: 'r'.repeat(40 * KIB) } });
    slow.read();
    await until('it has its response', async () => slow.messages.at(-1)?.result !== undefined);
    return (slow.messages.at(-1)?.result?.['_meta'] as Record<string, unknown>)['holdfast/refetch'];
  } finally {
    await stage.close();
  }
}

interface Cut {
  heldBytes: number;
  leftBytes: number;
}

async function cutReader(): Promise<Cut> {
  const stage = await FloodStage.open({ streamBytesMax: MIB, stalledReaderMs: STALLED_MS });
  try {
    const before = await stage.memory();
    const readers = Array.from({ length: 20 }, (_each, index) => stage.call(index));
    await stage.whenWaiting(readers.length);
    await stage.flood(100, MESSAGE_BYTES);
    const held = await stage.memory();
    await stage.whenWaiting(0);
    const grown = async () => (await stage.memory()).arrayBufferBytes - before.arrayBufferBytes;
    await until('their memory is freed', async () => (await grown()) < 2 * MIB);
    return { heldBytes: held.arrayBufferBytes - before.arrayBufferBytes, leftBytes: await grown() };
  } finally {
    await stage.close();
  }
}

const mib = (bytes: number) => `${(Math.max(0, bytes) / MIB).toFixed(1)} MiB`;

interface Seen {
  refusals: readonly Refusal[];
  stalled: Stalled;
  marked: unknown;
  cut: Cut;
}

function page({ refusals, stalled, marked, cut }: Seen): string {
  const { before, flooded, served, progress, response } = stalled;
  const latest = progress.at(-1)?.params?.['progress'];
  const all = READERS * NOTIFICATIONS * MESSAGE_BYTES;
  return `# Overload

Written by \`npm run evidence\`. Beyond a bound the answer is typed, says whether the same call may succeed later, and when to come back.

${refusals
  .map(
    ({ title, status, retryAfter, body }) =>
      `## ${title}\n\nHTTP ${status}, \`Retry-After: ${retryAfter}\`; \`retryAfterMs\` is rounded up here.\n\n${jsonBlock(body)}`,
  )
  .join('\n')}
## ${READERS} readers that read nothing

Each is told ${NOTIFICATIONS.toLocaleString('en-US')} notifications of ${MESSAGE_BYTES / KIB} KiB, ${Math.round(all / MIB).toLocaleString('en-US')} MiB in all; \`streamBytesMax\` is ${STREAM_BYTES_MAX / KIB} KiB. The gateway is a process of its own.

${measured(
  table(
    ['measured', ''],
    [
      ['buffers grew by at most', mib(flooded.arrayBufferBytes - before.arrayBufferBytes)],
      ['resident memory grew by at most', mib(flooded.rssBytes - before.rssBytes)],
      ['calls of another client answered meanwhile', String(served)],
      ['notifications the late reader still got', String(progress.length)],
    ],
  ),
)}
One of them reads at last. What waited for it was coalesced, which loses nothing a reader could still use: the last progress it gets is number
${String(latest)}, the latest there is, and after it comes the response, \`${JSON.stringify(response.result?.['structuredContent'])}\`.

## A reader whose response needs the room

The response of 40 KiB fits only in place of the progress that waits (\`streamBytesMax\` 64 KiB). Progress goes, a response never; it says
what went, which means: read the task again. \`_meta["holdfast/refetch"]\` of the response:

${jsonBlock(marked)}
## 20 readers that stay stalled

Cut after \`stalledReaderMs\` (${STALLED_MS.toLocaleString('en-US')} ms here); their tasks go on.

${measured(
  table(
    ['measured', ''],
    [
      ['buffers held for them before the cut', mib(cut.heldBytes)],
      ['after it', mib(cut.leftBytes)],
    ],
  ),
)}
Proven, others’ streams included, by \`test/e2e/gateway-flow.test.ts\` and \`test/e2e/gateway-limits.test.ts\`.
`;
}
