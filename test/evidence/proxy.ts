/** What a stream says to the proxies in front of it, and how long they may be idle (M6.2, field case 32). */
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts';
import { until } from '../../src/cli/demo/until.ts';
import { bufferingProxy } from '../support/buffering-proxy.ts';
import type { Proxy } from '../support/buffering-proxy.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { tool } from '../support/flood-stage.ts';
import { messagesOf, post } from '../support/mcp-messages.ts';
import { measured, table } from './page.ts';
import type { Pages } from './page.ts';

/** The proxy's patience and the gateway's comments, in the proportion of 60 s and 15 s. */
const IDLE_MS = 800;
const KEEP_ALIVE_MS = 200;
const COMMENTS = (3 * IDLE_MS) / KEEP_ALIVE_MS;
const HEADERS = ['content-type', 'cache-control', 'x-accel-buffering'];
const CALL = tool('transfer', { to: 'bob', amount: 5, idempotencyKey: 'k' });

export async function proxy(): Promise<Pages> {
  const alive = await behindProxy(KEEP_ALIVE_MS, outlive);
  const silent = await behindProxy(60_000, cutForItsSilence);
  return { 'proxy.md': page(alive, silent) };
}

type Behind = { driven: DrivenGateway; front: Proxy };

async function behindProxy<Seen>(
  keepAliveMs: number,
  play: (behind: Behind) => Promise<Seen>,
): Promise<Seen> {
  const driven = drivenGateway({ limits: { blockingMs: 600_000, keepAliveMs } });
  const front = await bufferingProxy((await driven.gateway.serveHttp({ port: 0 })).url, { idleMs: IDLE_MS });
  try {
    return await play({ driven, front });
  } finally {
    await front.close();
    await driven.gateway.close();
  }
}

interface Alive {
  headers: [name: string, value: string][];
  firstByteMs: number;
  openMs: number;
  frames: string[];
  cuts: number;
}

async function outlive({ driven, front }: Behind): Promise<Alive> {
  const calledAt = performance.now();
  const response = await post(`${front.url}/mcp`, CALL);
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  const first = await read();
  const firstByteMs = performance.now() - calledAt;
  let comment = '';
  for (let comments = 0; comments < COMMENTS; comments += 1) comment = await read();
  const openMs = performance.now() - calledAt;
  driven.client.complete({ receipt: 'r' });
  let rest = '';
  for (let part = await reader.read(); !part.done; part = await reader.read())
    rest += new TextDecoder().decode(part.value);
  const final = JSON.parse(rest.slice(rest.indexOf('data: ') + 'data: '.length)) as { result: object };
  return {
    headers: HEADERS.map((name) => [name, response.headers.get(name) ?? 'missing']),
    firstByteMs,
    openMs,
    frames: [first.trim(), comment.trim(), `data: ${JSON.stringify({ result: contentOf(final) })}`],
    cuts: front.cuts,
  };
}

const contentOf = ({ result }: { result?: object }) =>
  (result as { structuredContent?: unknown } | undefined)?.structuredContent;

async function cutForItsSilence({
  driven,
  front,
}: Behind): Promise<{ again: unknown; started: number; cancels: number }> {
  const cut = await post(`${front.url}/mcp`, CALL);
  await cut.text().then(
    () => Promise.reject(new Error('the proxy let a silent stream be')),
    () => undefined, // cut, as it must be
  );
  await until('the gateway has noticed', async () => driven.client.openWaits === 0);
  const again = post(`${front.url}/mcp`, CALL);
  await until('the same call waits again', async () => driven.client.openWaits === 1);
  driven.client.complete({ receipt: 'r' });
  const { result } = (await messagesOf(await again)).at(-1) ?? {};
  const started = new Set(driven.client.starts.map(({ key }) => key)).size;
  return { again: contentOf({ ...(result && { result }) }), started, cancels: driven.client.cancels.length };
}

function page(alive: Alive, silent: { again: unknown; started: number; cancels: number }): string {
  const { keepAliveMs, stalledReaderMs, blockingMs } = DEFAULT_LIMITS;
  const seconds = (ms: number) => `${ms / 1_000} s`;
  return `# Proxies: headers and idle policy

Written by \`npm run evidence\`, through a proxy that passes nothing on before the first byte of a body, holds a body back unless told not to,
and cuts what is silent (\`test/support/buffering-proxy.ts\`). The same through nginx as it comes: \`test/e2e/gateway-proxies.test.ts\`.

## Headers of a stream

${table(['header', 'value'], alive.headers)}
## What goes over it while there is nothing to say

\`\`\`
${alive.frames[0]}
${alive.frames[1]}      (${COMMENTS} of them, three times the proxy’s patience of ${IDLE_MS} ms, at one each ${KEEP_ALIVE_MS} ms)
${alive.frames[2]}
\`\`\`

Cut by the proxy: ${alive.cuts}.

${measured(
  table(
    ['measured', ''],
    [
      ['first byte through the proxy', `${Math.round(alive.firstByteMs)} ms`],
      ['open with nothing to say', `${Math.round(alive.openMs)} ms`],
    ],
  ),
)}
## A stream that is cut all the same

With no comments the proxy cuts it. The task goes on (cancels that the gateway made of it: ${silent.cancels}), and the same call under the same key, \`k\`, is answered
\`${JSON.stringify(silent.again)}\` from the same task (intents seen: ${silent.started}).

## Idle policy

${table(
  ['span', 'default', 'what it means for a proxy'],
  [
    ['first byte', 'at once', 'a comment, before there is anything to say'],
    [
      '`keepAliveMs`',
      seconds(keepAliveMs),
      'the idle timeout of every proxy must be longer, or this be lowered',
    ],
    [
      '`stalledReaderMs`',
      seconds(stalledReaderMs),
      'a proxy that takes nothing for so long is cut as a stalled reader',
    ],
    [
      '`blockingMs`',
      seconds(blockingMs),
      'no call of a client without Tasks is open longer; a total timeout above it never tells',
    ],
  ],
)}`;
}
