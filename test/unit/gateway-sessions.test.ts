/** Sessions of 2025's clients: whose they are, how many, how long. Time is moved by hand. */
import { McpServer } from '@modelcontextprotocol/server';
import { afterEach, describe, expect, it } from 'vitest';
import { createSessions, isLegacyInitialize, isModern } from '../../src/gateway/http/sessions.ts';
import type { Session, Sessions } from '../../src/gateway/http/sessions.ts';
import type { Json } from '../../src/task/json.ts';
import type { Principal } from '../../src/task/plan.ts';
import { deferred } from '../support/deferred.ts';
import { LOCAL } from '../support/driven-gateway.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import { rawMessage } from '../support/mcp-messages.ts';

const IDLE_MS = 1_000;
const INITIALIZE = {
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'old', version: '1' } },
};
const LIST = { jsonrpc: '2.0', id: 1, method: 'tools/list' };

const request = (message: object, id?: string, method = 'POST') =>
  new Request('http://127.0.0.1/mcp', {
    method,
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(id && { 'mcp-session-id': id }),
    },
    ...(method === 'POST' && { body: JSON.stringify(message) }),
  });

let sessions: Sessions;
let clock: HandDrivenClock;
function setUp(legacySessionsMax = 2): void {
  clock = new HandDrivenClock();
  sessions = createSessions({
    serverFor: () => new McpServer({ name: 'test', version: '1' }, { capabilities: { tools: {} } }),
    limits: { legacySessionsMax, legacySessionIdleMs: IDLE_MS, keepAliveMs: 15_000 },
    clock,
  });
}
afterEach(() => sessions.close());

const post = (session: Session, message: object, id?: string): Promise<Response> =>
  session.during('call', (face) => face.fetch(request(message, id), { parsedBody: message as Json }));
const initialize = async (session: Session, message: object = INITIALIZE): Promise<string> => {
  const response = await post(session, message);
  return response.headers.get('mcp-session-id') ?? '';
};
async function opened(principal: Principal = LOCAL): Promise<string> {
  const session = await sessions.open(principal);
  if (session === null) throw new Error('no session was opened');
  return initialize(session);
}
const isKnown = (id: string, principal: Principal = LOCAL) => sessions.find(id, principal) !== null;

describe('a session', () => {
  it('is found by its id and its opener alone, roles included [M7.1]', async () => {
    setUp();
    const id = await opened();
    expect(id).toMatch(/^[\w-]{32}$/);
    expect(isKnown(id)).toBe(true);
    const others = [{ tenant: 'other' }, { subject: 'eve' }, { roles: ['boss'] }].map((change) => ({
      ...LOCAL,
      ...change,
    }));
    expect(others.map((principal) => isKnown(id, principal))).toEqual([false, false, false]);
    expect(isKnown('made-up')).toBe(false);
  });

  it('serves its own requests until its client deletes it [M7.1]', async () => {
    setUp();
    const id = await opened();
    const session = sessions.find(id, LOCAL) as Session;
    expect((await post(session, LIST, id)).status).toBe(200);
    await session.during('stream', (face) => face.fetch(request({}, id, 'DELETE')));
    expect([isKnown(id), sessions.size, clock.pending]).toEqual([false, 0, 0]);
  });

  it('of an initialize that was refused is not kept [M7.2]', async () => {
    setUp();
    const session = await sessions.open(LOCAL);
    if (session) await initialize(session, { jsonrpc: '2.0', id: 0, method: 'initialize', params: {} });
    expect([sessions.size, clock.pending]).toEqual([0, 0]);
  });

  it('is ended when nothing was open for so long, counted from its last use [M7.2]', async () => {
    setUp();
    const id = await opened();
    clock.pass(IDLE_MS - 1);
    await post(sessions.find(id, LOCAL) as Session, LIST, id);
    clock.pass(IDLE_MS - 1);
    expect(isKnown(id)).toBe(true);
    clock.pass(1);
    expect([isKnown(id), clock.pending]).toEqual([false, 0]);
  });

  it.each(['call', 'stream'] as const)('lives on while a %s is open [M7.2]', async (kind) => {
    setUp();
    const id = await opened();
    const gate = deferred();
    const held = sessions.find(id, LOCAL)?.during(kind, () => gate.promise);
    clock.pass(10 * IDLE_MS);
    expect(isKnown(id)).toBe(true);
    gate.resolve();
    await held;
    clock.pass(2 * IDLE_MS);
    expect(isKnown(id)).toBe(false);
  });
});

describe('one session more than a principal may have', () => {
  it('ends the one idle longest, streams or not, and nobody else’s [M7.2]', async () => {
    setUp(2);
    const others = await opened({ ...LOCAL, subject: 'eve' });
    const [first, second] = [await opened(), await opened()];
    const gate = deferred();
    const stream = sessions.find(second, LOCAL)?.during('stream', () => gate.promise);
    await post(sessions.find(first, LOCAL) as Session, LIST, first);
    const third = await opened();
    expect([first, second, third].map((id) => isKnown(id))).toEqual([true, false, true]);
    expect(isKnown(others, { ...LOCAL, subject: 'eve' })).toBe(true);
    gate.resolve();
    await stream;
  });

  it('is refused while calls are under way in all of them, so that it is served without [M7.2]', async () => {
    setUp(1);
    const id = await opened();
    const gate = deferred();
    const call = sessions.find(id, LOCAL)?.during('call', () => gate.promise);
    expect(await sessions.open(LOCAL)).toBeNull();
    expect(isKnown(id)).toBe(true);
    gate.resolve();
    await call;
    expect(await sessions.open(LOCAL)).not.toBeNull();
  });

  it('ends one each where several come at one moment, and none that has just come [M7.2]', async () => {
    setUp(2);
    await Promise.all([opened(), opened()]);
    const newcomers = await Promise.all([1, 2, 3].map(() => sessions.open(LOCAL)));
    expect(newcomers.map((session) => session !== null)).toEqual([true, true, false]);
    expect(sessions.size).toBe(2);
    const ids = await Promise.all(newcomers.flatMap((session) => (session ? [initialize(session)] : [])));
    expect(ids.map((id) => isKnown(id))).toEqual([true, true]);
  });

  it('is refused always where none is allowed [M7.2]', async () => {
    setUp(0);
    expect(await sessions.open(LOCAL)).toBeNull();
  });
});

describe('a message', () => {
  it('opens a session only as 2025’s initialize', () => {
    expect(isLegacyInitialize(INITIALIZE)).toBe(true);
    const modern = rawMessage({ method: 'initialize' });
    expect([isLegacyInitialize(modern as never), isModern(modern as never)]).toEqual([false, true]);
    expect([LIST, [INITIALIZE], null, 'initialize'].map((each) => isLegacyInitialize(each))).toEqual([
      false,
      false,
      false,
      false,
    ]);
    expect([{ params: null }, { params: { _meta: 7 } }, []].map((each) => isModern(each))).toEqual([
      false,
      false,
      false,
    ]);
  });
});
