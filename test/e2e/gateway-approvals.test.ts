/** Approvals through the SDKs' own clients: the Tasks extension, forms on either era, and tools for all others. */
import { isDetailedTaskV2 } from '@modelcontextprotocol/ext-tasks/core/v2';
import { afterEach, describe, expect, it, vi } from 'vitest';
import type { Gateway, GatewayOptions } from '../../src/gateway/index.ts';
import { drivenGateway, drivenClient, LOCAL } from '../support/driven-gateway.ts';
import { connect, TASKS_CAPABILITIES } from '../support/mcp-clients.ts';
import type { ClientKind, Person, Place, TestClient, ToolAnswer } from '../support/mcp-clients.ts';
import { answerOf, post } from '../support/mcp-messages.ts';
import { connectTaskClient } from '../support/task-session.ts';

const CAPABILITIES = { ...TASKS_CAPABILITIES, elicitation: {} };
const LIMITS = { inlineWaitMs: 0, blockingMs: 30_000, progressIntervalMs: 0 };
const taskOf = (answer: ToolAnswer) => answer._meta?.['holdfast/task'] as Record<string, unknown>;
const textOf = (answer: ToolAnswer) => answer.content.map(({ text }) => text).join('\n');
const accept = (decision: string, reason = 'because') => ({
  action: 'accept' as const,
  content: { decision, reason },
});

const opened: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of opened.splice(0).reverse()) await close();
});

async function place(transport: Place['transport'], options: Partial<GatewayOptions> = {}): Promise<Place> {
  if (transport === 'stdio') return { transport, limits: LIMITS };
  const { gateway } = drivenGateway({ limits: LIMITS, ...options });
  opened.push(() => gateway.close());
  return { transport, url: await urlOf(gateway) };
}
const urlOf = async (gateway: Gateway) => `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;

describe.each(['http', 'stdio'] as const)('over %s, a client that declared Tasks', (transport) => {
  async function open() {
    const client = await connectTaskClient(await place(transport));
    opened.push(() => client.close());
    const send = async (method: string, params: object, capabilities: object = CAPABILITIES) =>
      client.request(method, params, capabilities);
    const call = async (name: string, args: object = {}) =>
      (await send('tools/call', { name, arguments: args })).result ?? {};
    const { taskId } = await call('transfer', { to: 'bob', amount: 5 });
    const get = async (capabilities?: object) =>
      (await send('tasks/get', { taskId }, capabilities)).result ?? {};
    const update = (inputResponses: object) => send('tasks/update', { taskId, inputResponses });
    return { taskId, call, get, update, send };
  }

  it('is asked by input_required, answers with tasks/update, and the task goes on [M2.3] [M7.3]', async () => {
    const { call, get, update } = await open();
    await call('ask');
    const task = await get();
    expect(isDetailedTaskV2(task)).toBe(true);
    expect(task).toMatchObject({
      status: 'input_required',
      inputRequests: { 'action#1': { method: 'elicitation/create' } },
    });
    const { result } = await update({ 'action#1': accept('approve') });
    expect(Object.keys(result ?? {}).filter((key) => key !== '_meta')).toEqual(['resultType']);
    expect(await get()).toMatchObject({ status: 'working', statusMessage: 'approved' });
    await call('release', { result: { receipt: 'r-1' } });
    expect(await get()).toMatchObject({ status: 'completed' });
    expect((await call('decisions')).structuredContent).toMatchObject({
      decisions: [{ kind: 'approve', callId: 'action#1', channel: 'mcp', reason: 'because' }],
    });
  });

  it('has answered, unknown and malformed keys ignored, and an ill-fitting answer refused [M2.3]', async () => {
    const { call, get, update } = await open();
    await call('ask');
    expect((await update({ 'action#9': accept('approve'), constructor: 7 })).error).toBeUndefined();
    expect((await update({ 'action#1': { action: 'decline' } })).error).toBeUndefined();
    expect((await update({ 'action#1': accept('perhaps') })).error).toMatchObject({ code: -32602 });
    expect(await get()).toMatchObject({ status: 'input_required' });
    await update({ 'action#1': accept('reject', 'too much') });
    const ended = await get();
    expect(ended).toMatchObject({
      status: 'completed',
      result: { isError: true, structuredContent: { error: { code: 'approval_rejected' } } },
    });
    expect((await update({ 'action#1': accept('approve') })).error).toBeUndefined();
    expect(await get()).toEqual(ended);
  });

  it('whom policy does not let answer is shown who does, and its answer changes nothing [M2.3] [M7.3]', async () => {
    const { taskId, call, get, update } = await open();
    await call('ask', { approval: { mayAnswerOverMcp: false } });
    const before = await get();
    expect(before).toMatchObject({ status: 'working' });
    expect(before.statusMessage).toContain(`holdfast task approve ${String(taskId)}`);
    expect((await update({ 'action#1': accept('approve') })).error).toBeUndefined();
    expect(await get()).toEqual(before);
  });

  it('and takes no forms is never sent one [M2.3]', async () => {
    const { call, get } = await open();
    await call('ask');
    const task = await get(TASKS_CAPABILITIES);
    expect(task).toMatchObject({ status: 'working' });
    expect(task).not.toHaveProperty('inputRequests');
  });

  it('finds foreign tasks not found, whatever it answers [M2.3] [M2.6]', async () => {
    const { send } = await open();
    const { error } = await send('tasks/update', {
      taskId: 'task_other',
      inputResponses: { 'action#1': accept('approve') },
    });
    expect(error).toMatchObject({ code: -32602, message: 'task not found' });
  });
});

const kinds: ClientKind[] = ['v2 modern', 'v2 legacy', 'v1'];

async function openPlain(kind: ClientKind, transport: Place['transport'], person?: Person) {
  const at = await place(transport);
  const client: TestClient = await connect(kind, at, person);
  opened.push(() => client.close());
  const begin = (approval: object = {}) => meetApproval(client, approval);
  return { client, begin };
}

/** A call of `transfer` whose task opens an approval while it blocks. */
async function meetApproval(client: TestClient, approval: object): Promise<ToolAnswer> {
  const progress: unknown[] = [];
  const call = client.callTool(
    'transfer',
    { to: 'bob', amount: 5 },
    { onprogress: (each) => progress.push(each) },
  );
  call.catch(() => undefined);
  await vi.waitFor(() => expect(progress.length).toBeGreaterThan(0), { timeout: 20_000 });
  await client.callTool('ask', { approval });
  return call;
}

const withForms: [ClientKind, Place['transport']][] = [
  ['v2 modern', 'http'],
  ['v2 modern', 'stdio'],
  ['v2 legacy', 'http'],
  ['v2 legacy', 'stdio'],
  ['v1', 'http'],
  ['v1', 'stdio'],
];

describe.each(withForms)('a %s client that takes forms, over %s,', (kind, transport) => {
  it('puts the question to its person in the midst of the call, which then ends with the result [M3.1] [M7.3]', async () => {
    const questions: string[] = [];
    const { client, begin } = await openPlain(kind, transport, (question) => {
      questions.push(question);
      return accept('approve');
    });
    const pending = begin();
    await vi.waitFor(
      async () =>
        expect((await client.callTool('decisions', {})).structuredContent).toMatchObject({
          decisions: [{ kind: 'approve', channel: 'mcp' }],
        }),
      { timeout: 20_000 },
    );
    await client.callTool('release', { result: { receipt: 'r-1' } });
    expect(await pending).toMatchObject({ structuredContent: { receipt: 'r-1' } });
    expect(questions).toHaveLength(1);
    expect(questions[0]).toMatch(
      /transfer waits for a decision.*"to":"bob","amount":5.*account is frozen.*inBand/s,
    );
  });

  it('whose person rejects has the rejection for its result [M3.1]', async () => {
    const { begin } = await openPlain(kind, transport, () => accept('reject', 'not today'));
    expect(await begin()).toMatchObject({
      isError: true,
      structuredContent: { error: { code: 'approval_rejected', message: 'Rejected: not today' } },
    });
  });

  it('whose person dismisses the form is handed the task, and can answer later [M3.1] [M3.2]', async () => {
    const { client, begin } = await openPlain(kind, transport, () => ({ action: 'cancel' }));
    const handed = await begin();
    expect(textOf(handed)).toMatch(/WAITING FOR A DECISION.*nobody decided/s);
    const { taskId } = taskOf(handed) as { taskId: string };
    const answered = await client.callTool('task_answer', { taskId, decision: 'approve' });
    expect(answered.structuredContent).toMatchObject({ accepted: true, code: 'approved' });
  });

  it('is never asked what policy leaves to others [M7.3]', async () => {
    const { begin } = await openPlain(kind, transport, () => {
      throw new Error('a person was asked');
    });
    expect(textOf(await begin({ mayAnswerOverMcp: false }))).toMatch(
      /a person must decide.*holdfast task approve.*Do not call transfer again/s,
    );
  });
});

describe.each(withForms.filter(([kind]) => kind !== 'v2 modern'))(
  'a %s client, over %s,',
  (kind, transport) => {
    it('is told progress that rises over the question, which is asked within one request [M4.2]', async () => {
      const client = await connect(kind, await place(transport), () => accept('approve'));
      opened.push(() => client.close());
      const progress: { progress: number; message?: string | undefined }[] = [];
      const onprogress = (each: (typeof progress)[number]) => progress.push(each);
      const call = client.callTool('transfer', { to: 'bob', amount: 5 }, { onprogress });
      const isTold = (message: string) =>
        vi.waitFor(() => expect(progress.map((each) => each.message)).toContain(message), {
          timeout: 20_000,
        });
      await isTold('running attempt 1');
      await client.callTool('ask', {});
      await isTold('approved');
      await client.callTool('release', { result: { receipt: 'r-1' } });
      expect(await call).toMatchObject({ structuredContent: { receipt: 'r-1' } });
      expect(progress.map((each) => each.progress)).toEqual(progress.map((_each, index) => index + 1));
    });
  },
);

describe.each(kinds)('a %s client without forms, over http,', (kind) => {
  it('is handed the task at once, and passes on a person’s decision with task_answer [M3.1] [M3.2]', async () => {
    const { client, begin } = await openPlain(kind, 'http');
    const handed = await begin();
    const { taskId } = taskOf(handed) as { taskId: string };
    expect(handed).toMatchObject({
      structuredContent: {
        code: 'awaiting_approval',
        next: { tool: 'task_answer', arguments: { taskId, callId: 'action#1' } },
      },
    });
    const answer = (args: object) => client.callTool('task_answer', { taskId, ...args });
    expect((await answer({ callId: 'action#2', decision: 'approve' })).structuredContent).toMatchObject({
      accepted: false,
      code: 'not_open',
    });
    expect(
      (await answer({ callId: 'action#1', decision: 'approve', reason: 'ann said so' })).structuredContent,
    ).toMatchObject({ accepted: true, code: 'approved' });
    const waiting = client.callTool('task_wait', { taskId });
    await client.callTool('release', { result: { receipt: 'r-2' } });
    expect(await waiting).toMatchObject({ structuredContent: { receipt: 'r-2' } });
  });

  it('that may not answer is told who may, and its decision changes nothing [M7.3] [M3.2]', async () => {
    const { client, begin } = await openPlain(kind, 'http');
    const handed = await begin({ mayAnswerOverMcp: false });
    const { taskId } = taskOf(handed) as { taskId: string };
    expect(textOf(handed)).toContain(`holdfast task approve ${taskId}`);
    const refused = await client.callTool('task_answer', { taskId, decision: 'approve' });
    expect(refused.structuredContent).toMatchObject({ accepted: false, code: 'not_allowed' });
    expect(taskOf(await client.callTool('task_get', { taskId }))).toMatchObject({
      status: 'awaiting_approval',
    });
    const foreign = await client.callTool('task_answer', { taskId: 'task_other', decision: 'approve' });
    expect(foreign.structuredContent).toMatchObject({ error: { code: 'task_not_found' } });
  });
});

describe('a requestState', () => {
  const key = new Uint8Array(32).fill(7);
  const call = (state?: string, args: object = { to: 'bob', amount: 5 }) => ({
    method: 'tools/call',
    params: {
      name: 'transfer',
      arguments: args,
      ...(state && { requestState: state, inputResponses: { 'action#1': accept('approve') } }),
    },
    capabilities: { elicitation: {} },
  });
  const sha = async (token: string) =>
    Buffer.from(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(token))).toString('hex');

  /** Two gateways in front of one system, each knowing ann and eve. */
  async function twoGateways(keys: [Uint8Array, Uint8Array]) {
    const client = drivenClient();
    const tokens = [
      { sha256: await sha('ann'), ...LOCAL },
      { sha256: await sha('eve'), ...LOCAL, subject: 'eve' },
      { sha256: await sha('twin'), ...LOCAL, tenant: 'globex' },
    ];
    const urls = [];
    for (const requestStateKey of keys) {
      const { gateway } = drivenGateway({
        client,
        auth: { kind: 'tokens', tokens },
        limits: LIMITS,
        requestStateKey,
      });
      opened.push(() => gateway.close());
      urls.push(await urlOf(gateway));
    }
    const send = async (url: string, token: string, message: ReturnType<typeof call>) =>
      answerOf(await post(url, message, { headers: { authorization: `Bearer ${token}` } }));
    const asked = send(urls[0] ?? '', 'ann', call());
    await vi.waitFor(() => expect(client.openWaits).toBe(1));
    await client.start({ action: 'ask', args: {}, principal: LOCAL });
    const { result } = await asked;
    return { client, urls, send, result, state: String(result?.requestState) };
  }

  it('is taken by every gateway with the key, and holds no more than what the call is about [M3.1]', async () => {
    const { client, urls, send, result, state } = await twoGateways([key, key]);
    expect(result).toMatchObject({
      resultType: 'input_required',
      inputRequests: { 'action#1': { method: 'elicitation/create' } },
      _meta: { 'holdfast/task': { taskId: 'task_1', status: 'awaiting_approval' } },
    });
    const back = send(urls[1] ?? '', 'ann', call(state));
    await vi.waitFor(() => expect(client.decisions).toHaveLength(1));
    client.complete({ receipt: 'r' });
    expect((await back).result).toMatchObject({
      resultType: 'complete',
      structuredContent: { receipt: 'r' },
    });
    const body = Buffer.from(state.split('.')[1] ?? '', 'base64url').toString();
    expect(Object.keys((JSON.parse(body) as { p: object }).p).sort()).toEqual([
      'call',
      'callId',
      'fingerprint',
      'taskId',
    ]);
  });

  it.each([
    ['another tenant’s namesake', 'twin', key, (state: string) => call(state)],
    ['another principal', 'eve', key, (state: string) => call(state)],
    ['a gateway with another key', 'ann', new Uint8Array(32).fill(8), (state: string) => call(state)],
    ['a forger', 'ann', key, (state: string) => call(`${state.slice(0, -4)}AAAA`)],
    ['another call', 'ann', key, (state: string) => call(state, { to: 'eve', amount: 5 })],
  ])('sent by or to %s decides nothing [M3.1] [M7.3]', async (_who, token, other, message) => {
    const { client, urls, send, state } = await twoGateways([key, other]);
    const { error } = await send(urls[1] ?? '', token, message(state));
    expect(error).toMatchObject({ code: -32602 });
    // Whose it is shows as little as whether it is anybody's (M2.6).
    const forged = await send(urls[1] ?? '', token, call(`${state.slice(0, -4)}AAAA`));
    if (token !== 'ann') expect(error).toEqual(forged.error);
    expect(client.decisions).toEqual([]);
    expect(client.starts.filter(({ action }) => action === 'transfer')).toHaveLength(1);
  });
});
