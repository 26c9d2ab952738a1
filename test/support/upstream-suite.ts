/**
 * What every `Upstream` must do, run against the connection over each transport and era, and against whatever stands for
 * one in tests. The stage's server has the tools of test/support/upstream-server.ts by name and behaviour.
 */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { RemoteStatus } from '../../src/contract/remote-server.ts';
import type { JsonObject } from '../../src/task/json.ts';
import type { Upstream, UpstreamCall, UpstreamReply } from '../../src/upstream/upstream.ts';

export interface UpstreamStage {
  upstream: Upstream;
  /** Counted by the server. */
  effects(key: string): number;
  /** The server as it is after its process was killed and started again; what it keeps it has. */
  restart(): Promise<void>;
  /** Whether `upstream-server`'s `works` asks a question before it ends. */
  asksInTasks: boolean;
  close(): Promise<void>;
}

const NEVER = new AbortController().signal;

export function describeUpstream(name: string, open: () => Promise<UpstreamStage>): void {
  describe(name, () => {
    let stage: UpstreamStage;
    beforeEach(async () => {
      stage = await open();
    });
    afterEach(() => stage.close());

    const call = (tool: string, args: JsonObject = {}, more: Partial<UpstreamCall> = {}) =>
      stage.upstream.call({ tool, args, signal: NEVER, ...more });

    test('lists the tools of all pages, schemas as they are, and leaves out what has no name', async () => {
      const tools = await stage.upstream.tools(NEVER);
      expect(tools.map(({ name }) => name)).toEqual(expect.arrayContaining(['echo', 'works']));
      expect(tools.every(({ name }) => name !== '')).toBe(true);
      const echo = tools.find((tool) => tool.name === 'echo');
      expect(echo).toMatchObject({ title: 'Echo', description: 'Answers.' });
      expect(echo?.inputSchema).toEqual({ type: 'object', properties: { text: { type: 'string' } } });
    });

    test('answers what the tool answered, and carries arguments and meta to it', async () => {
      const reply = await call('echo', { text: 'hi', amount: 1.5 }, { meta: { key: 'op-1' } });
      expect(reply).toMatchObject({
        kind: 'answer',
        isError: false,
        structured: { args: { text: 'hi', amount: 1.5 }, meta: { key: 'op-1' } },
      });
      expect((reply as Extract<UpstreamReply, { kind: 'answer' }>).content).toHaveLength(1);
    });

    test('an error that the tool tells is an answer', async () => {
      expect(await call('fails')).toMatchObject({ kind: 'answer', isError: true, structured: null });
    });

    test('[S5] a refused request is refused; an error of the server’s own is in doubt', async () => {
      expect(await call('refuses')).toMatchObject({ kind: 'refused', code: -32_602 });
      expect(await call('troubled')).toMatchObject({ kind: 'in_doubt' });
    });

    test('[M8.3] a server that dies after the effect leaves the call in doubt, never sent again, and is replaced', async () => {
      await call('echo'); // from here on a request that did not arrive would be made again
      expect(await call('apply_and_die', { key: 'k' })).toMatchObject({ kind: 'in_doubt' });
      expect(stage.effects('k')).toBe(1);
      expect(await call('count', { key: 'k' })).toMatchObject({ kind: 'answer', structured: { count: 1 } });
    });

    test('[M8.3] what was in flight when the server was killed is in doubt, and the next call meets the new one', async () => {
      await call('echo');
      const inFlight = call('hangs');
      await call('echo'); // read after it
      await stage.restart();
      expect(await inFlight).toMatchObject({ kind: 'in_doubt' });
      expect(await call('apply', { key: 'after' })).toMatchObject({ kind: 'answer' });
      expect(stage.effects('after')).toBe(1);
    });

    test('a call that is cancelled is in doubt at once; one cancelled before was not sent', async () => {
      const leaving = new AbortController();
      const left = call('hangs', {}, { signal: leaving.signal });
      await call('echo');
      leaving.abort('left');
      expect(await left).toMatchObject({ kind: 'in_doubt' });
      expect(await call('apply', { key: 'k' }, { signal: AbortSignal.abort() })).toMatchObject({
        kind: 'not_sent',
      });
      expect(stage.effects('k')).toBe(0);
    });

    test('[M5.5] what is answered after the cancel is ignored', async () => {
      const leaving = new AbortController();
      const left = call('late', {}, { signal: leaving.signal });
      await call('echo');
      leaving.abort('left');
      expect(await left).toMatchObject({ kind: 'in_doubt' });
      expect(await call('echo')).toMatchObject({ kind: 'answer' });
    });

    test('a task is read over restarts of its server until its result, and an unknown one is not found', async () => {
      const { upstream } = stage;
      const reply = await call('works');
      if (reply.kind !== 'task') throw new Error(`works answered ${reply.kind}`);
      const { task } = reply;
      expect(task).toMatchObject({ server: upstream.identity, tool: 'works' });
      expect(await upstream.remote.status(task, NEVER)).toMatchObject({ kind: 'working' });
      await stage.restart();
      let status: RemoteStatus = await upstream.remote.status(task, NEVER);
      if (stage.asksInTasks) {
        expect(status).toMatchObject({ kind: 'input_required', requests: { sure: {} } });
        await stage.restart();
        await upstream.remote.answer(task, { sure: { action: 'accept', content: { sure: true } } }, NEVER);
        status = await upstream.remote.status(task, NEVER);
      }
      expect(status).toMatchObject({ kind: 'completed', result: { structuredContent: {} } });
      expect(await upstream.remote.status({ ...task, taskId: 'none' }, NEVER)).toEqual({ kind: 'not_found' });
    });

    test('a task is cancelled by its own request, twice without harm', async () => {
      const { upstream } = stage;
      const reply = await call('works');
      if (reply.kind !== 'task') throw new Error(`works answered ${reply.kind}`);
      await upstream.remote.cancel(reply.task, NEVER);
      await upstream.remote.cancel(reply.task, NEVER);
      expect(await upstream.remote.status(reply.task, NEVER)).toMatchObject({ kind: 'cancelled' });
    });

    test('closed, it sends nothing any more', async () => {
      await call('echo');
      await stage.upstream.close();
      expect(await call('apply', { key: 'k' })).toMatchObject({ kind: 'not_sent' });
      expect(stage.effects('k')).toBe(0);
    });
  });
}
