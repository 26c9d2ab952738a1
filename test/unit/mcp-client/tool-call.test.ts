import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { CallOutcome } from '../../../src/mcp-client/outcome.ts';
import type { Reply } from '../../../src/mcp-client/reply.ts';
import { MCP_CLIENT_LIMITS } from '../../../src/mcp-client/limits.ts';
import { callTool } from '../../../src/mcp-client/tool-call.ts';
import type { ToolCall } from '../../../src/mcp-client/tool-call.ts';
import type { ToolTerms } from '../../../src/mcp-client/tool-terms.ts';
import type { JsonObject } from '../../../src/task/json.ts';
import type { EffectClass } from '../../../src/task/plan.ts';
import { handDrivenLink, settle } from '../../support/hand-driven-link.ts';
import type { Answer, HandDrivenRequest } from '../../support/hand-driven-link.ts';

const terms = (effect: EffectClass): ToolTerms => ({
  effect,
  key: effect === 'safe' ? null : { in: 'meta' },
});
const call = (effect: EffectClass): ToolCall => ({
  tool: 'transfer',
  args: { to: 'bob', amount: 5 },
  terms: terms(effect),
  key: effect === 'safe' ? null : 'order-7',
});
const lost: Reply = { kind: 'failure', failure: 'lost', message: 'cut' };
const result = (value: JsonObject): Reply => ({ kind: 'result', result: value });
const done = result({ content: [], structuredContent: { ok: true } });
const refusal = (code: string, details: JsonObject = {}, _meta: JsonObject = {}): Reply =>
  result({
    _meta,
    content: [{ type: 'text', text: code }],
    isError: true,
    structuredContent: { error: { code, message: code, details, retryable: true } },
  });
const ofTask = (status: string, effect: string | null = null): Reply =>
  result({
    content: [{ type: 'text', text: status }],
    _meta: { 'holdfast/task': { taskId: 'task_1', status, effect, replayed: false } },
  });

async function outcomeOf(
  effect: EffectClass,
  answer: (request: HandDrivenRequest, nth: number) => Answer,
  spans: { idleMs?: number; maximumMs?: number; signal?: AbortSignal } = {},
) {
  const driven = handDrivenLink(answer);
  const { idleMs = 1_000, maximumMs = 60_000, signal } = spans;
  const span = { idleMs, maximumAt: maximumMs, ...(signal && { signal }) };
  const outcome = await settle(callTool(driven.parts, call(effect), span), driven.clock);
  return { outcome, ...driven };
}
const sends = (requests: HandDrivenRequest[]) => requests.filter(({ params }) => params.name === 'transfer');

describe('a call whose reply is lost', () => {
  it('is sent again if safe, under a new id and the same arguments, over a new connection [M6.3]', async () => {
    const { outcome, requests, opened } = await outcomeOf('safe', (_request, nth) => (nth < 3 ? lost : done));
    expect(outcome).toMatchObject({ kind: 'completed', result: { structuredContent: { ok: true } } });
    expect(new Set(requests.map(({ id }) => id)).size).toBe(3);
    for (const { params } of requests)
      expect(params).toEqual({ name: 'transfer', arguments: { to: 'bob', amount: 5 } });
    expect(opened()).toBe(3);
  });

  it('is sent again if conditional, with the same key and the same arguments [M6.3]', async () => {
    const { outcome, requests } = await outcomeOf('conditional', (_request, nth) => (nth < 4 ? lost : done));
    expect(outcome.kind).toBe('completed');
    expect(requests).toHaveLength(4);
    for (const { params } of requests)
      expect(params).toEqual({
        name: 'transfer',
        arguments: { to: 'bob', amount: 5 },
        _meta: { 'holdfast/idempotencyKey': 'order-7' },
      });
  });

  const find = { name: 'task_get', arguments: { tool: 'transfer', idempotencyKey: 'order-7' } };
  const notFound = result({
    content: [{ type: 'text', text: 'no' }],
    isError: true,
    structuredContent: { error: { code: 'task_not_found', message: 'no', retryable: false } },
  });

  it('is never sent again if unsafe: it is looked for under its key, and once found its task is followed [M6.3]', async () => {
    const answers = [
      lost,
      lost,
      notFound,
      ofTask('running'),
      ofTask('running'),
      ofTask('completed', 'applied'),
    ];
    const { outcome, requests } = await outcomeOf('unsafe', (_request, nth) => answers[nth - 1] as Reply);
    expect(outcome).toMatchObject({ kind: 'completed', taskId: 'task_1' });
    expect(sends(requests)).toHaveLength(1);
    expect(requests.slice(1, 4).map(({ params }) => params)).toEqual([find, find, find]);
    expect(requests.slice(4).map(({ params }) => params.arguments)).toEqual([
      { taskId: 'task_1' },
      { taskId: 'task_1' },
    ]);
  });

  it('is looked for while the server is away, as long as the call may take [M6.3] [M4.1]', async () => {
    const { outcome, requests, clock } = await outcomeOf('unsafe', () => lost);
    expect(outcome).toMatchObject({ kind: 'unknown', taskId: null, key: 'order-7', reason: 'maximum' });
    expect(clock.now()).toBeGreaterThanOrEqual(60_000);
    expect(sends(requests)).toHaveLength(1);
  });

  it('is not asked for by key where the server is no Holdfast gateway, or an older one [M6.3]', async () => {
    const refused: Reply = { kind: 'error', error: { code: -32_602, message: 'unknown tool' } };
    const older = await outcomeOf('unsafe', (_request, nth) => (nth === 1 ? lost : refused));
    expect(older.outcome).toMatchObject({ kind: 'unknown', reason: 'lost' });
    expect(older.requests).toHaveLength(2);
    const driven = handDrivenLink(() => lost);
    const foreign: ToolCall = { ...call('unsafe'), terms: { effect: 'unsafe', key: null }, key: null };
    const outcome = await settle(
      callTool(driven.parts, foreign, { idleMs: 1_000, maximumAt: 60_000 }),
      driven.clock,
    );
    expect(outcome).toMatchObject({ kind: 'unknown', key: null, reason: 'lost' });
    expect(driven.requests).toHaveLength(1);
  });

  it('is not taken for an earlier use of its key that ended with nothing sent, unless the key is its own [M6.3] [S1.6]', async () => {
    const refusal = result({
      content: [{ type: 'text', text: 'refused' }],
      isError: true,
      structuredContent: { error: { code: 'precondition_failed', message: 'no', retryable: false } },
      _meta: { 'holdfast/task': { taskId: 'task_1', status: 'failed', effect: 'none', replayed: false } },
    });
    const answer = (_request: unknown, nth: number) => (nth === 1 ? lost : refusal);
    expect((await outcomeOf('unsafe', answer)).outcome).toMatchObject({ kind: 'unknown', reason: 'lost' });
    const driven = handDrivenLink(answer);
    const own = { ...call('unsafe'), isOwnKey: true };
    const outcome = await settle(
      callTool(driven.parts, own, { idleMs: 1_000, maximumAt: 60_000 }),
      driven.clock,
    );
    expect(outcome).toMatchObject({ kind: 'failed', effect: 'none', taskId: 'task_1' });
  });

  it('is unknown if unsafe and not found within its time, with the key and whom to ask [M6.3]', async () => {
    const { outcome, requests, clock } = await outcomeOf('unsafe', (_request, nth) =>
      nth === 1 ? lost : notFound,
    );
    expect(sends(requests)).toHaveLength(1);
    expect(outcome).toMatchObject({ kind: 'unknown', taskId: null, key: 'order-7', reason: 'lost' });
    expect(clock.now()).toBeGreaterThanOrEqual(MCP_CLIENT_LIMITS.findMs.value);
    expect(clock.now()).toBeLessThan(MCP_CLIENT_LIMITS.findMs.value + MCP_CLIENT_LIMITS.backoffMs.value);
    expect((outcome as { ask: string }).ask).toMatch(
      /Do not call again.*transfer.*"order-7".*may still be on its way/,
    );
  });

  it('is given up after a bounded number of losses [M6.3]', async () => {
    const { outcome, requests } = await outcomeOf('conditional', () => lost, { maximumMs: 10_000_000 });
    expect(requests).toHaveLength(MCP_CLIENT_LIMITS.lostRequestsMax.value + 1);
    expect(outcome).toMatchObject({ kind: 'unknown', reason: 'lost', key: 'order-7' });
  });
});

describe('an error of the gateway that names no task [M1.5]', () => {
  const found = ofTask('completed', 'applied');

  it.each(['engine_unavailable', 'ledger_unavailable', 'operation_in_progress', 'internal_error'])(
    '%s leaves open whether the call began: the same key asks again, and an unsafe call is only looked for [M6.3]',
    async (code) => {
      const answer = (_request: unknown, nth: number) => (nth === 1 ? refusal(code) : found);
      const conditional = await outcomeOf('conditional', answer);
      expect(conditional.outcome.kind).toBe('completed');
      expect(sends(conditional.requests).map(({ params }) => params._meta)).toEqual([
        { 'holdfast/idempotencyKey': 'order-7' },
        { 'holdfast/idempotencyKey': 'order-7' },
      ]);
      const unsafe = await outcomeOf('unsafe', answer);
      expect(unsafe.outcome).toMatchObject({ kind: 'completed', taskId: 'task_1' });
      expect(sends(unsafe.requests)).toHaveLength(1);
      expect(unsafe.requests[1]?.params).toEqual({
        name: 'task_get',
        arguments: { tool: 'transfer', idempotencyKey: 'order-7' },
      });
    },
  );

  it('the same beside the id of a task that was perhaps never started: the key starts it [M6.3]', async () => {
    const open = { taskId: 'task_1', status: 'proposed', effect: null, replayed: false };
    const away = refusal('engine_unavailable', {}, { 'holdfast/task': open });
    const { outcome, requests } = await outcomeOf('conditional', (_request, nth) =>
      nth === 1 ? away : found,
    );
    expect([outcome.kind, sends(requests).length]).toEqual(['completed', 2]);
  });

  it('a safe call follows no task that was perhaps never started: it is made again [M6.3]', async () => {
    const open = { taskId: 'task_1', status: 'proposed', effect: null, replayed: false };
    const away = refusal('engine_unavailable', {}, { 'holdfast/task': open });
    const { outcome, requests } = await outcomeOf('safe', (_request, nth) => (nth === 1 ? away : done));
    expect([outcome.kind, sends(requests).length]).toEqual(['completed', 2]);
  });

  it('too_many_calls is asked again when the gateway says, unsafe calls too: nothing was begun [M7.2]', async () => {
    const { outcome, requests, clock } = await outcomeOf('unsafe', (_request, nth) =>
      nth === 1 ? refusal('too_many_calls', { retryAfterMs: 3_000 }) : found,
    );
    expect(outcome.kind).toBe('completed');
    expect(sends(requests)).toHaveLength(2);
    expect(clock.now()).toBeGreaterThanOrEqual(3_000);
  });

  it('a refusal is the answer, and after a loss says nothing of what was lost', async () => {
    const first = await outcomeOf('conditional', () => refusal('invalid_arguments'));
    expect(first.outcome).toMatchObject({ kind: 'failed', error: { code: 'invalid_arguments' } });
    const later = await outcomeOf('conditional', (_request, nth) =>
      nth === 1 ? lost : refusal('invalid_arguments'),
    );
    expect(later.outcome).toMatchObject({ kind: 'unknown', reason: 'lost', key: 'order-7' });
  });
});

it('reads a task that goes on and never calls again, unsafe or not, however often reading is cut off [M6.3]', async () => {
  const reads = [lost, ofTask('running'), lost, lost, ofTask('completed', 'applied')];
  for (const effect of ['conditional', 'unsafe'] as const) {
    const { outcome, requests } = await outcomeOf(effect, (_request, nth) =>
      nth === 1 ? ofTask('running') : (reads[nth - 2] as Reply),
    );
    expect(outcome).toMatchObject({ kind: 'completed', taskId: 'task_1' });
    expect(sends(requests)).toHaveLength(1);
    expect(requests.slice(1).map(({ params }) => params.name)).toEqual(reads.map(() => 'task_get'));
  }
});

it('asks for a task that goes on ever less often [M6.3]', async () => {
  const { outcome, requests } = await outcomeOf('conditional', () => ofTask('running'), {
    maximumMs: 120_000,
  });
  expect(outcome).toMatchObject({ kind: 'unknown', reason: 'maximum', taskId: 'task_1' });
  expect(requests.length).toBeGreaterThan(24);
  expect(requests.length).toBeLessThan(50);
});

it('waits at least as long as the server asked before it comes again, unsafe calls too, since nothing was begun [M6.3]', async () => {
  const at: number[] = [];
  const later: Reply = { kind: 'failure', failure: 'told_later', message: '429', retryAfterMs: 3_000 };
  const driven = handDrivenLink((_request, nth) => {
    at.push(driven.clock.now());
    return nth < 3 ? later : done;
  });
  const span = { idleMs: 1_000, maximumAt: 60_000 };
  const outcome = await settle(callTool(driven.parts, call('unsafe'), span), driven.clock);
  expect(outcome.kind).toBe('completed');
  expect((at[1] ?? 0) - (at[0] ?? 0)).toBeGreaterThanOrEqual(3_000);
  expect((at[2] ?? 0) - (at[1] ?? 0)).toBeGreaterThanOrEqual(3_000);
});

describe('the two clocks of a call', () => {
  it('no progress for the idle time is a lost request; real progress keeps it, up to the maximum [M4.1]', async () => {
    const quiet = await outcomeOf('safe', (_request, nth) => (nth === 1 ? 'silent' : done), { idleMs: 500 });
    expect([quiet.outcome.kind, quiet.requests.length]).toEqual(['completed', 2]);
    const driven = handDrivenLink((request) => {
      let value = 0;
      const goOn = () => {
        request.progress((value += 1));
        driven.clock.after(400, goOn);
      };
      goOn();
      return 'silent';
    });
    const working = await settle(
      callTool(driven.parts, call('conditional'), { idleMs: 500, maximumAt: 2_000 }),
      driven.clock,
    );
    expect(working).toMatchObject({ kind: 'unknown', reason: 'maximum' });
    expect([driven.requests.length, driven.clock.now()]).toEqual([1, 2_000]);
  });

  it('the maximum and the caller’s leaving abandon the wait: unknown with the task where one is known [M4.1] [M5.3]', async () => {
    const { outcome } = await outcomeOf('unsafe', () => ofTask('running'), { maximumMs: 5_000 });
    expect(outcome).toMatchObject({ kind: 'unknown', taskId: 'task_1', reason: 'maximum', key: 'order-7' });
    const gone = new AbortController();
    const left = await outcomeOf('conditional', () => (gone.abort(), 'silent'), { signal: gone.signal });
    expect(left.outcome).toMatchObject({ kind: 'unknown', reason: 'abandoned', taskId: null });
    expect(left.requests).toHaveLength(1);
  });

  it('a server that is away for all of the maximum leaves a call failed without effect: nothing was ever sent [M6.3]', async () => {
    const away: Reply = { kind: 'failure', failure: 'not_sent', message: 'ECONNREFUSED' };
    const { outcome } = await outcomeOf('unsafe', () => away, { maximumMs: 30_000 });
    expect(outcome).toMatchObject({
      kind: 'failed',
      effect: 'none',
      error: { code: 'no_answer', retryable: true },
    });
  });
});

it('whatever the network does to each request, there is one outcome, in bounded time, and an unsafe call was begun at most once [M6.3]', async () => {
  const replies: Record<string, Answer> = {
    lost,
    silent: 'silent',
    not_sent: { kind: 'failure', failure: 'not_sent', message: 'm' },
    later: { kind: 'failure', failure: 'told_later', message: 'm', retryAfterMs: 500 },
    refused: { kind: 'failure', failure: 'refused', message: 'm' },
    // M1.5: said in a result, without a task.
    away: refusal('engine_unavailable'),
    many: refusal('too_many_calls', { retryAfterMs: 300 }),
    wrong: refusal('invalid_arguments'),
    trouble: { kind: 'error', error: { code: -32_603, message: 'm' } },
    working: ofTask('running'),
    doubt: ofTask('needs_attention', 'unknown'),
    done: ofTask('completed', 'applied'),
  };
  const cases = fc.sample(
    fc.record({
      effect: fc.constantFrom<EffectClass>('safe', 'conditional', 'unsafe'),
      fates: fc.array(fc.constantFrom(...Object.keys(replies)), { minLength: 1, maxLength: 8 }),
    }),
    { numRuns: 120, seed: 20_261_130 },
  );
  for (const { effect, fates } of cases) {
    const fateOf = (nth: number) => fates[Math.min(nth, fates.length) - 1] ?? 'lost';
    const { outcome, requests, clock } = await outcomeOf(
      effect,
      (_request, nth) => replies[fateOf(nth)] ?? lost,
      {
        maximumMs: 20_000,
      },
    );
    const kinds: CallOutcome['kind'][] = ['completed', 'failed', 'unknown'];
    expect(kinds).toContain(outcome.kind);
    expect(clock.now()).toBeLessThanOrEqual(20_050);
    const mayHaveBegun = requests.filter(
      ({ params }, place) =>
        params.name === 'transfer' &&
        !['not_sent', 'later', 'many', 'refused', 'wrong'].includes(fateOf(place + 1)),
    );
    if (effect === 'unsafe') expect(mayHaveBegun.length).toBeLessThanOrEqual(1);
    if (effect === 'conditional')
      for (const { params } of sends(requests))
        expect(params._meta).toEqual({ 'holdfast/idempotencyKey': 'order-7' });
    if (outcome.kind === 'failed' && effect !== 'safe' && outcome.taskId === null)
      expect(mayHaveBegun).toHaveLength(0);
  }
});
