import fc from 'fast-check';
import { expect, it } from 'vitest';
import { RETRY_MATRIX, retryVerdict } from '../../../src/mcp-client/retry-matrix.ts';
import type { RequestFailure, SentCall } from '../../../src/mcp-client/retry-matrix.ts';
import { toolTerms } from '../../../src/mcp-client/tool-terms.ts';
import type { EffectClass } from '../../../src/task/plan.ts';
import { holds } from '../../support/property.ts';

/** What the network does to one sending: only a lost one may have been carried out. */
interface Fate {
  failure: RequestFailure;
  isCarriedOut: boolean;
  taskId: string | null;
}

const fate: fc.Arbitrary<Fate> = fc.record({
  failure: fc.constantFrom<RequestFailure>('not_sent', 'told_later', 'refused', 'lost'),
  isCarriedOut: fc.boolean(),
  taskId: fc.option(fc.constant('task_1'), { freq: 3 }),
});

/** Follows the matrix through the fates; what the target did, by key, and how often anything reached it. */
function sendAsTold(call: Omit<SentCall, 'taskId'>, fates: Fate[]) {
  const effects: (string | null)[] = [];
  const sent: (string | null)[] = [];
  for (const { failure, isCarriedOut, taskId } of fates) {
    const key = call.canCarryKey ? 'the one key' : null;
    sent.push(key);
    if (failure === 'lost' && isCarriedOut) effects.push(key);
    const verdict = retryVerdict({ ...call, taskId }, failure);
    if (verdict !== 'again_new_id' && verdict !== 'again_same_key') return { effects, sent, verdict };
  }
  return { effects, sent, verdict: 'sent on' };
}

it('whatever the network does, an unsafe call takes effect at most once, and a conditional one is only ever sent under one key [M6.3]', () => {
  const cases = fc.record({
    effect: fc.constantFrom<EffectClass>('safe', 'conditional', 'unsafe'),
    canCarryKey: fc.boolean(),
    canBeFound: fc.boolean(),
    fates: fc.array(fate, { minLength: 1, maxLength: 12 }),
  });
  holds('mcp-client retry matrix', cases, ({ fates, ...call }) => {
    const { effects, sent } = sendAsTold(call, fates);
    const isDeduplicated = call.effect === 'conditional' && call.canCarryKey;
    if (isDeduplicated) expect(new Set(sent)).toEqual(new Set(['the one key']));
    if (call.effect !== 'safe' && !isDeduplicated) expect(effects.length).toBeLessThanOrEqual(1);
  });
});

it('nothing is sent again after a loss once a task is known, or that the server refused for good [M6.3]', () => {
  for (const row of Object.values(RETRY_MATRIX)) {
    expect(row.lost_with_task).toBe('read_task');
    expect(row.refused).toBe('refused');
  }
  expect(RETRY_MATRIX.unsafe.lost).toBe('find_task');
  const elsewhere = { effect: 'unsafe', canCarryKey: true, canBeFound: false, taskId: null } as const;
  expect(retryVerdict(elsewhere, 'lost')).toBe('unknown');
  expect(RETRY_MATRIX.safe.lost).toBe('again_new_id');
  expect(RETRY_MATRIX.conditional.lost).toBe('again_same_key');
});

it('a tool’s class is what its contract or the configuration says, the stricter of both, and never what a hint says [S5.1] [M6.3]', () => {
  const hinted = { name: 't', annotations: { readOnlyHint: true, idempotentHint: true } };
  expect(toolTerms(hinted, undefined)).toEqual({ effect: 'unsafe', key: null });
  expect(toolTerms(undefined, undefined).effect).toBe('unsafe');
  const published = (effect: unknown) => ({ ...hinted, _meta: { 'holdfast/effect': effect } });
  expect(toolTerms(published('safe'), undefined)).toEqual({ effect: 'safe', key: null });
  expect(toolTerms(published('conditional'), undefined)).toEqual({
    effect: 'conditional',
    key: { in: 'meta' },
  });
  const _meta = { 'holdfast/effect': 'conditional', 'holdfast/keyArgument': 'request_id' };
  expect(toolTerms({ ...hinted, _meta }, undefined).key).toEqual({ in: 'meta', own: 'request_id' });
  expect(toolTerms(published('SAFE'), undefined).effect).toBe('unsafe');
  expect(toolTerms(published('unsafe'), { effect: 'safe' }).effect).toBe('unsafe');
  expect(toolTerms(published('safe'), { effect: 'unsafe' }).effect).toBe('unsafe');
  expect(toolTerms(hinted, { effect: 'conditional', keyArgument: 'requestId' })).toEqual({
    effect: 'conditional',
    key: { in: 'argument', name: 'requestId' },
  });
  expect(toolTerms(hinted, { effect: 'conditional' }).key).toBeNull();
});
