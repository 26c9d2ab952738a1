/**
 * A driven gateway in a process of its own, so that its memory is its own. Beside `/mcp` it serves what a test of slow
 * readers needs: `/flood?count=&bytes=` moves the open task so often, each time with a message of so many bytes, and
 * answers the highest memory seen meanwhile; `/memory` answers it now, after a collection.
 */
import { setImmediate as turn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { drivenGateway } from './driven-gateway.ts';
import { childOptions, tell } from './in-child.ts';

/** Beyond that a test has failed anyway, and the machine is not to suffer for it. */
const RSS_STOP_BYTES = 1_200 * 1024 * 1024;

export interface Flooded {
  moves: number;
  rssBytes: number;
  arrayBufferBytes: number;
}

export interface Memory {
  rssBytes: number;
  arrayBufferBytes: number;
  openWaits: number;
}

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc') as () => void;

const { gateway, client } = drivenGateway({ limits: childOptions<Partial<GatewayLimits>>() });

async function flood(count: number, bytes: number): Promise<Flooded> {
  const most = { rssBytes: 0, arrayBufferBytes: 0 };
  let moves = 0;
  while (moves < count && most.rssBytes < RSS_STOP_BYTES) {
    moves += 1;
    client.move({ statusMessage: `${moves} ${'x'.repeat(bytes)}` });
    await turn(); // every reader's sender has had its turn
    const { rss, arrayBuffers } = process.memoryUsage();
    most.rssBytes = Math.max(most.rssBytes, rss);
    most.arrayBufferBytes = Math.max(most.arrayBufferBytes, arrayBuffers);
  }
  return { moves, ...most };
}

function memory(): Memory {
  collect();
  const { rss, arrayBuffers } = process.memoryUsage();
  return { rssBytes: rss, arrayBufferBytes: arrayBuffers, openWaits: client.openWaits };
}

const { url } = await gateway.serveHttp({
  port: 0,
  routes: [
    {
      path: '/flood',
      handle: async (request, response) => {
        const { searchParams } = new URL(request.url ?? '', 'http://localhost');
        const flooded = await flood(Number(searchParams.get('count')), Number(searchParams.get('bytes')));
        response.end(JSON.stringify(flooded));
      },
    },
    { path: '/memory', handle: (_request, response) => void response.end(JSON.stringify(memory())) },
  ],
});
tell({ notice: 'ready', data: { url } });
