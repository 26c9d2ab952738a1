/** A blocking call that meets an approval, and the same call when it comes back with a person's answer. */
import { describe, expect, it, vi } from 'vitest';
import { callAction } from '../../src/gateway/call-tool.ts';
import type { CallOutcome } from '../../src/gateway/call-tool.ts';
import type { Caller } from '../../src/gateway/caller.ts';
import type { ApprovalView } from '../../src/client/task-client.ts';
import { KEY_META } from '../../src/contract/wire-names.ts';
import { createGateway } from '../../src/gateway/index.ts';
import { inRequest } from '../../src/gateway/open-request.ts';
import { toolOf } from '../../src/gateway/tool-spec.ts';
import { drivenClient, drivenTools, LOCAL, openApproval, transfer } from '../support/driven-gateway.ts';
import { callerWith, callParts } from '../support/past-the-sdk.ts';

const ARGS = { to: 'bob', amount: 5 };
const approve = { 'action#1': { action: 'accept', content: { decision: 'approve', reason: 'fine' } } };
const readBalance = drivenTools.find(({ name }) => name === 'read_balance') ?? toolOf(transfer);

function setUp(change: Partial<Caller> = {}) {
  const client = drivenClient();
  const parts = callParts({ client });
  const caller = callerWith({ canElicit: true, ...change });
  const call = (also: Partial<Caller> = {}, args: object = ARGS, tool = toolOf(transfer)) =>
    inRequest(parts, { ...caller, ...also }, (request) => callAction(parts, tool, args, request));
  const ask = (approval: Partial<ApprovalView> = {}) =>
    client.move({ status: 'awaiting_approval', effect: 'none', approval: openApproval(approval) });
  /** A call that has met an approval. */
  const met = async (
    approval: Partial<ApprovalView> = {},
    also: Partial<Caller> = {},
    tool = toolOf(transfer),
  ) => {
    const pending = call(also, ARGS, tool);
    await vi.waitFor(() => expect(client.openWaits).toBe(1));
    ask(approval);
    return pending;
  };
  return { client, call, ask, met };
}

const stateOf = (outcome: CallOutcome) => {
  if (outcome.kind !== 'input') throw new Error(`a question was expected, not ${outcome.kind}`);
  return { requestState: outcome.state };
};

describe('a blocking call that meets an approval', () => {
  it('asks at once, where policy allows it and the client takes forms [M3.1] [M7.3]', async () => {
    const { met } = setUp();
    expect(await met()).toMatchObject({
      kind: 'input',
      approval: { callId: 'action#1' },
      state: { taskId: 'task_1', callId: 'action#1', fingerprint: 'sha256-of-the-call' },
    });
  });

  it.each([
    ['policy leaves it to others', { mayAnswerOverMcp: false }, {}],
    ['its client takes no forms', {}, { canElicit: false }],
  ])(
    'is handed its task at once, and need not call again, where %s [M3.1] [M7.3]',
    async (_why, approval, also) => {
      const { client, met } = setUp();
      expect(await met(approval, also)).toMatchObject({
        kind: 'result',
        result: {
          structuredContent: { code: 'awaiting_approval', callAgain: false, task: { taskId: 'task_1' } },
        },
      });
      expect(client).toMatchObject({ openWaits: 0, decisions: [] });
    },
  );

  it('is answered without a wait when the task was waiting already [M3.1]', async () => {
    const { client, call, met } = setUp();
    await met();
    client.failNext('wait', new Error('it was waited for'));
    expect(await call()).toMatchObject({ kind: 'input', answer: { attached: true } });
  });

  it('of a safe action gives a Tasks client the task, which it can answer [M2.1] [M2.3]', async () => {
    const { met } = setUp({ declaresTasks: true });
    expect(await met({}, {}, { ...readBalance, publishSchema: () => ({}) })).toMatchObject({ kind: 'task' });
  });
});

describe('the call that comes back', () => {
  it('with a decision passes it on, starts nothing and waits for the end [M3.1] [M2.3]', async () => {
    const { client, call, met } = setUp();
    const back = call({ ...stateOf(await met()), inputResponses: approve });
    await vi.waitFor(() => expect(client.openWaits).toBe(1));
    client.complete({ receipt: 'r' });
    expect(await back).toMatchObject({ kind: 'result', result: { structuredContent: { receipt: 'r' } } });
    expect(client.starts).toHaveLength(1);
    expect(client.decisions).toMatchObject([
      {
        taskId: 'task_1',
        principal: LOCAL,
        decision: {
          kind: 'approve',
          callId: 'action#1',
          fingerprint: 'sha256-of-the-call',
          channel: 'mcp',
          reason: 'fine',
        },
      },
    ]);
  });

  it('under another key in _meta is another call, whatever its arguments [M3.1] [M1.3]', async () => {
    const { client, call, met } = setUp({ meta: { [KEY_META]: 'order-1' } });
    const back = { ...stateOf(await met()), inputResponses: approve };
    for (const meta of [{ [KEY_META]: 'order-2' }, {}])
      await expect(call({ ...back, meta })).rejects.toThrow('belongs to another call');
    expect(client.decisions).toEqual([]);
  });

  it('twice is the same decision; another principal’s or another verdict is another one [M2.3] [S4.3]', async () => {
    const { client, call, met } = setUp();
    client.onDecision = () => ({ accepted: false, code: 'not_allowed', status: 'awaiting_approval' });
    const state = stateOf(await met());
    const reject = { 'action#1': { action: 'accept', content: { decision: 'reject' } } };
    await call({ ...state, inputResponses: approve });
    await call({ ...state, inputResponses: approve });
    await call({ ...state, inputResponses: reject });
    await call({ ...state, inputResponses: approve, principal: { ...LOCAL, subject: 'eve' } });
    const ids = client.decisions.map(({ decision }) => decision.decisionId);
    expect(ids[1]).toBe(ids[0]);
    expect(new Set(ids).size).toBe(3);
  });

  it('with a decision that the task refuses is told so and not asked again [M7.3]', async () => {
    const { client, call, met } = setUp();
    client.onDecision = () => ({
      accepted: false,
      code: 'not_allowed',
      status: 'awaiting_approval',
      message: 'Only someone with role finance may decide.',
    });
    const outcome = await call({ ...stateOf(await met()), inputResponses: approve });
    expect(outcome).toMatchObject({
      kind: 'result',
      result: { structuredContent: { code: 'awaiting_approval' } },
    });
    expect(JSON.stringify(outcome)).toContain(
      'changed nothing (not_allowed): Only someone with role finance',
    );
  });

  it('after the form was dismissed has its task’s handle: nobody decided [M3.1]', async () => {
    const { client, call, met } = setUp();
    const outcome = await call({
      ...stateOf(await met()),
      inputResponses: { 'action#1': { action: 'decline' } },
    });
    expect(JSON.stringify(outcome)).toContain('nobody decided');
    expect(client.decisions).toEqual([]);
  });

  it('without a usable answer is asked again, and about a new approval anew [M3.1]', async () => {
    const { client, call, ask, met } = setUp();
    const state = stateOf(await met());
    expect(await call({ ...state, inputResponses: {} })).toMatchObject({ kind: 'input' });
    client.onDecision = () => {
      ask({ callId: 'action#2' });
      return { accepted: true, code: 'edited_needs_approval', status: 'awaiting_approval' };
    };
    expect(await call({ ...state, inputResponses: approve })).toMatchObject({
      kind: 'input',
      approval: { callId: 'action#2' },
    });
  });

  it.each([
    ['other arguments', { to: 'eve', amount: 5 }, toolOf(transfer)],
    ['another tool', ARGS, readBalance],
  ])(
    'with %s is refused: the state belongs to the call it was given for [M3.1]',
    async (_what, args, tool) => {
      const { client, call, met } = setUp();
      const state = stateOf(await met());
      await expect(call({ ...state, inputResponses: approve }, args, tool)).rejects.toMatchObject({
        code: -32602,
      });
      expect(client.decisions).toEqual([]);
    },
  );
});

it('a key too short to sign with is refused at the start [M3.1]', () => {
  const auth = { kind: 'loopback', principal: LOCAL } as const;
  expect(() =>
    createGateway({ client: drivenClient(), tools: [], auth, requestStateKey: new Uint8Array(16) }),
  ).toThrow(/16 bytes; at least 32/);
});
