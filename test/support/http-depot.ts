/** The depot of remote-depot.ts for tests with several processes: it stands in the test's own, workers reach it by HTTP. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { z } from 'zod';
import { defineAction, implementAction, remoteTask } from '../../src/contract/index.ts';
import type { RemoteServer, RemoteStatus, RemoteTaskHandle } from '../../src/contract/remote-server.ts';
import { RemoteDepot } from './remote-depot.ts';

export interface HttpDepot {
  depot: RemoteDepot;
  url: string;
  /** From now on such requests are counted, and answered only by `letGo`. */
  hold(kind: 'status'): void;
  letGo(): void;
  /** Requests held so far. */
  readonly held: number;
  close(): Promise<void>;
}

export async function startHttpDepot(): Promise<HttpDepot> {
  const depot = new RemoteDepot();
  let holding: string | null = null;
  let held = 0;
  const waiting: (() => void)[] = [];
  const server = createServer((request, response) => {
    const [, kind = '', id = ''] = (request.url ?? '').split('/');
    const answer = async (): Promise<void> => {
      const body = await answerOf(depot, kind, decodeURIComponent(id));
      response.end(JSON.stringify(body ?? null));
    };
    if (kind !== holding) return void answer();
    held += 1;
    waiting.push(() => void answer());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    depot,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold: (kind) => void (holding = kind),
    letGo: () => {
      holding = null;
      for (const goOn of waiting.splice(0)) goOn();
    },
    get held() {
      return held;
    },
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

function answerOf(depot: RemoteDepot, kind: string, id: string): Promise<unknown> {
  const task = { taskId: id } as RemoteTaskHandle;
  if (kind === 'submit') return Promise.resolve(depot.submit(id));
  return kind === 'cancel' ? depot.cancel(task) : depot.status(task);
}

async function ask(kind: 'submit' | 'status' | 'cancel', id: string, signal: AbortSignal): Promise<unknown> {
  const url = `${process.env['HOLDFAST_DEPOT_URL']}/${kind}/${encodeURIComponent(id)}`;
  return (await fetch(url, { method: 'POST', signal })).json();
}

/** As a worker knows it, in HOLDFAST_DEPOT_URL. */
export const httpDepotServer: RemoteServer = {
  status: async ({ taskId }, signal) => (await ask('status', taskId, signal)) as RemoteStatus,
  cancel: async ({ taskId }, signal) => void (await ask('cancel', taskId, signal)),
  answer: () => Promise.reject(new Error('this depot asks for nothing')),
};

export const httpDepotAction = implementAction(
  defineAction({
    name: 'archive',
    version: 1,
    description: 'Archives a folder at a depot in another process, which takes hours.',
    effect: 'safe',
    input: z.object({ folder: z.string() }),
    output: z.object({ files: z.number() }),
    verify: { none: 'the test looks itself' },
  }),
  {
    execute: async (_input, { operationId, signal }) =>
      remoteTask((await ask('submit', operationId, signal)) as RemoteTaskHandle),
    remoteResult: (_input, given) => Promise.resolve(given['structuredContent'] as { files: number }),
  },
);
