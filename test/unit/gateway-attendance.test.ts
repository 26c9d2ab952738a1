/** `onAbandon: 'cancel'` (M5.3): what becomes of a keyless task that was left, as every gateway's waiters say it. */
import { describe, expect, it, vi } from 'vitest';
import { callAction } from '../../src/gateway/call-tool.ts';
import type { Caller } from '../../src/gateway/caller.ts';
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts';
import { inRequest } from '../../src/gateway/open-request.ts';
import { toolOf } from '../../src/gateway/tool-spec.ts';
import type { ToolSpec } from '../../src/gateway/tool-spec.ts';
import { drivenClient, drivenTools, transfer } from '../support/driven-gateway.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import type { HandDrivenTaskClient } from '../support/hand-driven-task-client.ts';
import { callerWith, callParts } from '../support/past-the-sdk.ts';

const abandonable: ToolSpec = { ...toolOf(transfer), onAbandon: 'cancel' };
const ABANDON_MS = DEFAULT_LIMITS.abandonMs;
const CANCELLED = [{ taskId: 'task_1', reason: 'abandoned' }];

/** One gateway of several in front of `client`, with a clock of its own. */
function gatewayOver(client: HandDrivenTaskClient) {
  const clock = new HandDrivenClock();
  const shutdown = new AbortController();
  const parts = callParts({
    client,
    limits: { ...DEFAULT_LIMITS, inlineWaitMs: 0 },
    clock,
    shutdown: shutdown.signal,
  });
  const call = async (
    change: Partial<Caller> = {},
    tool = abandonable,
    args: object = { to: 'bob', amount: 5 },
  ) => {
    const leaving = new AbortController();
    const caller = callerWith({ signal: leaving.signal, ...change });
    const waits = client.openWaits;
    const answer = inRequest(parts, caller, (request) => callAction(parts, tool, args, request));
    answer.catch(() => undefined);
    if (!change.declaresTasks) await vi.waitFor(() => expect(client.openWaits).toBe(waits + 1));
    return { answer, leave: () => leave(leaving, answer) };
  };
  /** Settles when the gateway has said it for the last time. */
  const leave = async (leaving: AbortController, answer: Promise<unknown>) => {
    leaving.abort(new Error('gone'));
    await expect(answer).rejects.toThrow('gone');
    await settled();
  };
  const pass = async (ms: number) => {
    clock.pass(ms);
    await settled();
  };
  return { call, pass, clock, shutdown };
}
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a task that its caller cancelled the request of', () => {
  it('is asked to cancel when nobody has come back for 30 s, and not before [M5.3]', async () => {
    const client = drivenClient();
    const { call, pass } = gatewayOver(client);
    await (await call()).leave();
    await pass(ABANDON_MS - 1);
    expect(client.cancels).toEqual([]);
    await pass(1);
    expect(client.cancels).toEqual(CANCELLED);
  });

  it('goes on when the call came back, until that one leaves too [M5.3]', async () => {
    const client = drivenClient();
    const { call, pass, clock } = gatewayOver(client);
    await (await call()).leave();
    await pass(ABANDON_MS - 1);
    const again = await call();
    await pass(20_000);
    expect(client.cancels).toEqual([]);
    await again.leave();
    await pass(ABANDON_MS);
    expect(client.cancels).toEqual(CANCELLED);
    expect(clock.pending).toBe(0);
  });

  it('goes on while somebody else waits for it, in whatever gateway [M5.3]', async () => {
    const client = drivenClient();
    const here = gatewayOver(client);
    const there = gatewayOver(client);
    const first = await here.call();
    const other = await there.call();
    await first.leave();
    await there.pass(ABANDON_MS / 3);
    await here.pass(ABANDON_MS);
    expect(client.cancels).toEqual([]);
    client.complete({ receipt: 'r' });
    expect(await other.answer).toMatchObject({
      kind: 'result',
      result: { structuredContent: { receipt: 'r' } },
    });
    expect(there.clock.pending).toBe(0);
  });

  it.each([
    ['in words', {}, () => DEFAULT_LIMITS.blockingMs],
    ['as a task', { declaresTasks: true }, () => 0],
  ] as [string, Partial<Caller>, () => number][])(
    'is cancelled by nobody’s leaving once its handle was answered %s [M5.3]',
    async (_how, change, waitMs) => {
      const client = drivenClient();
      const { call, pass, clock } = gatewayOver(client);
      const handed = await call(change);
      clock.pass(waitMs());
      await handed.answer;
      await (await call()).leave();
      await pass(2 * ABANDON_MS);
      expect(client.cancels).toEqual([]);
    },
  );

  it.each([
    ['that has a key', { meta: { 'holdfast/idempotencyKey': 'k' } }, abandonable],
    ['of a tool that says nothing of it', {}, toolOf(transfer)],
    ['left by a disconnect that is no cancel', { abortMeansCancel: () => false }, abandonable],
  ] as [string, Partial<Caller>, ToolSpec][])('%s goes on [M5.3] [M5.1]', async (_which, change, tool) => {
    const client = drivenClient();
    const { call, pass, clock } = gatewayOver(client);
    await (await call(change, tool)).leave();
    await pass(2 * ABANDON_MS);
    expect(client.cancels).toEqual([]);
    expect(clock.pending).toBe(0);
  });

  it('goes on when the gateway shuts down meanwhile [M5.4]', async () => {
    const client = drivenClient();
    const { call, pass, clock, shutdown } = gatewayOver(client);
    await (await call()).leave();
    shutdown.abort();
    expect(clock.pending).toBe(0);
    await pass(ABANDON_MS);
    expect(client.cancels).toEqual([]);
  });

  it('goes on while the ledger can not say who waits for it [M5.3]', async () => {
    const client = drivenClient();
    const { call, pass } = gatewayOver(client);
    const left = await call();
    vi.spyOn(client, 'attend').mockRejectedValue(new Error('the ledger is away'));
    await left.leave();
    await pass(ABANDON_MS);
    expect(client.cancels).toEqual([]);
  });

  it('of a safe tool is given up at once, as ever [M5.3]', async () => {
    const client = drivenClient();
    const { call } = gatewayOver(client);
    const readBalance = drivenTools.find(({ name }) => name === 'read_balance') ?? abandonable;
    await (await call({}, { ...readBalance, onAbandon: 'cancel' }, { account: 'a' })).leave();
    expect(client.cancels).toEqual([{ taskId: 'task_1', reason: 'the request was cancelled' }]);
    expect(client.marks).toEqual([]);
  });
});
