/** Progress on the wire, of tools that tell of it while they return (field case 31, M4.2). */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { TASKS_CAPABILITIES } from '../support/mcp-clients.ts';
import { messagesOf, post } from '../support/mcp-messages.ts';
import type { RawMessage, RpcResponse } from '../support/mcp-messages.ts';
import { RawStdio } from '../support/raw-stdio.ts';

const LIMITS = { blockingMs: 30_000, inlineWaitMs: 20_000, progressIntervalMs: 0 };
const tool = (name: string, args: object = {}) => ({
  method: 'tools/call',
  params: { name, arguments: args },
});
const openTasks = tool('open_tasks');

/** What one call was sent, response included, in the order it came. */
type Wire = (call: RawMessage, meanwhile: () => Promise<void>) => Promise<RpcResponse[]>;

interface Face {
  wire: Wire;
  ask(message: RawMessage): Promise<RpcResponse | undefined>;
  close(): Promise<unknown>;
}

async function onHttp(): Promise<Face> {
  const driven: DrivenGateway = drivenGateway({ limits: LIMITS });
  const url = `${(await driven.gateway.serveHttp({ port: 0 })).url}/mcp`;
  return {
    async wire(call, meanwhile) {
      const response = post(url, call);
      await meanwhile();
      return messagesOf(await response);
    },
    ask: async (message) => (await messagesOf(await post(url, message))).at(-1),
    close: () => driven.gateway.close(),
  };
}

function onStdio(): Promise<Face> {
  const gateway = new RawStdio(LIMITS);
  return Promise.resolve({
    async wire(call, meanwhile) {
      const id = gateway.send({ ...call, id: 'call' });
      await meanwhile();
      await gateway.until('the response', () => gateway.answersTo(id).length > 0);
      await gateway.ask(openTasks); // whatever was still under way is here now
      return gateway.received.filter((message) => message.id === id || message.id === undefined);
    },
    ask: (message) => gateway.ask(message),
    close: () => gateway.close(),
  });
}

describe.each([
  ['http', onHttp],
  ['stdio', onStdio],
] as const)('progress over %s', (_transport, connect) => {
  let face: Face;
  afterEach(() => face.close());
  const whenOpen = () =>
    vi.waitFor(
      async () => expect((await face.ask(openTasks))?.result?.structuredContent).toEqual({ open: 1 }),
      { timeout: 20_000 },
    );
  /** The task tells of 20 steps, ends, and tells of 5 more, all at once. */
  const burst = async () => {
    await whenOpen();
    await face.ask(tool('burst', { before: 20, after: 5 }));
  };

  it.each(['p', '', 0, 7, -1])(
    'carries token %o and no other, rises strictly, and ends before the response [M4.2] [case 31]',
    async (progressToken) => {
      face = await connect();
      const messages = await face.wire(
        { ...tool('transfer', { to: 'bob', amount: 5 }), meta: { progressToken } },
        burst,
      );
      const response = messages.findIndex(({ result }) => result !== undefined);
      expect(response).toBe(messages.length - 1);
      const progress = messages.slice(0, response);
      expect(progress.length).toBeGreaterThan(0);
      expect(new Set(progress.map(({ method }) => method))).toEqual(new Set(['notifications/progress']));
      for (const { params } of progress) expect(params?.progressToken).toBe(progressToken);
      const values = progress.map(({ params }) => params?.progress as number);
      for (const [index, value] of values.entries()) expect(value).toBeGreaterThan(values[index - 1] ?? 0);
    },
  );

  it('there is none without a token, for a call that changes something and for one that does not [M4.2] [case 31]', async () => {
    for (const call of [tool('transfer', { to: 'bob', amount: 5 }), tool('read_balance', { account: 'a' })]) {
      face = await connect();
      expect(await face.wire(call, burst)).toHaveLength(1);
      await face.close();
    }
    face = await connect();
  });

  it('there is none for a task of the extension, whose status says it; a safe call of that client has it [M4.2] [case 31]', async () => {
    const declared = { capabilities: TASKS_CAPABILITIES, meta: { progressToken: 0 } };
    face = await connect();
    const task = await face.wire({ ...tool('transfer', { to: 'bob', amount: 5 }), ...declared }, burst);
    expect(task).toHaveLength(1);
    await face.close();
    face = await connect();
    const safe = await face.wire({ ...tool('read_balance', { account: 'a' }), ...declared }, burst);
    expect(safe.length).toBeGreaterThan(1);
  });
});
