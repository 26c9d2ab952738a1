/**
 * People in a rehearsal (S4, S6.4, S7): the policy is the action's own and is answered as it asks, and what nobody
 * approved, or somebody interrupted, does not begin.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  ActionFailure,
  applied,
  defineAction,
  holds,
  implementAction,
  mismatch,
  notApplied,
  verified,
} from '../../src/index.ts';
import type { ActionDefinition, ActionHandlers, ApprovalRule } from '../../src/index.ts';
import { openTestServer, rehearse } from '../../src/testing/index.ts';
import type { RehearsalReport, TestServer } from '../../src/testing/index.ts';

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

/** The bank's own book: what it was told to send, how often. */
const sent = new Map<string, number>();
beforeEach(() => sent.clear());
const send = (operationId: string): void => void sent.set(operationId, (sent.get(operationId) ?? 0) + 1);

const input = z.object({ to: z.string(), amount: z.int() });
const output = z.object({ id: z.string() });
type Input = z.output<typeof input>;
type Output = z.output<typeof output>;
const idOf = (operationId: string): Output => ({ id: `wire-${operationId}` });

/** A bank that dedupes nothing, can be asked, and gives nothing back. */
function wire(
  approval: ((input: Input) => false | ApprovalRule) | undefined,
  handlers: Partial<ActionHandlers<Input, Output>> = {},
  definition: Partial<ActionDefinition<typeof input, typeof output>> = {},
) {
  const contract = defineAction({
    name: 'wire',
    version: 1,
    description: 'Wires money.',
    effect: 'unsafe',
    lookup: 'conclusive',
    input,
    output,
    rollback: { kind: 'none', reason: 'the bank gives nothing back' },
    deadlines: { attempt: '1s', verify: '1s', run: '5m' },
    ...(approval && { approval }),
    ...definition,
  });
  return implementAction(contract, {
    execute: async (_input, { operationId }) => {
      send(operationId);
      return idOf(operationId);
    },
    lookup: async ({ operationId }) => (sent.has(operationId) ? applied(idOf(operationId)) : notApplied()),
    verify: async (_input, { id }) =>
      sent.has(id.slice('wire-'.length)) ? verified() : mismatch('not sent'),
    ...handlers,
    rehearsal: {
      args: { to: 'DE02', amount: 900 },
      count: async (operationId) => sent.get(operationId) ?? 0,
    },
  });
}

const endsOf = ({ scenarios }: RehearsalReport): Record<string, string> =>
  Object.fromEntries(scenarios.map(({ scenario, end }) => [scenario, end]));
const brokenIn = ({ scenarios }: RehearsalReport): string[] =>
  scenarios.filter(({ verdict }) => verdict === 'broken').map(({ scenario }) => scenario);

describe('approvals in a rehearsal', () => {
  test('[S6.6] [S6.4] [S4.6] what can not be undone asks by itself: its phrase is typed back, or the call is rejected', async () => {
    const report = await rehearse(wire(undefined), { server, only: 'appro' });
    expect(report.broken).toEqual([]);
    expect(report.approval).toBe(
      '1 of anybody but the requester, typing back a phrase; when nobody decides in time: deny',
    );
    expect(endsOf(report)).toMatchObject({ approved: 'completed', rejected: 'failed, nothing applied' });
    const phrase = await rehearse(wire(undefined), { server, only: 'the phrase' });
    expect(endsOf(phrase)).toEqual({
      'nothing goes wrong': 'completed',
      'the phrase is wrong three times': 'failed, nothing applied',
    });
  });

  test('[S6.6] [S4.5] a quorum in the policy’s own roles approves, and crashes after it keep the promise', async () => {
    const treasury = wire(() => ({ roles: ['treasurer'], quorum: 2 }));
    const report = await rehearse(treasury, { server, only: 'crash' });
    expect(report.broken).toEqual([]);
    expect(report.approval).toBe('2 of treasurer, typing back a phrase; when nobody decides in time: deny');
    expect(report.scenarios.length).toBeGreaterThan(5);
  });

  test.each([
    ['deny', 'failed, nothing applied', []],
    ['halt', 'needs a person', ['approval_expired']],
    ['remind', 'completed', ['approval_reminder']],
    ['escalate', 'completed', ['approval_expired']],
  ] as const)('[S6.6] [S4.4] approval that nobody gives in time: %s', async (onExpiry, end, alerts) => {
    const action = wire(() => ({ roles: ['clerk'], onExpiry, escalateTo: ['cfo'] }));
    const report = await rehearse(action, { server, only: 'nobody decides' });
    expect(report.broken).toEqual([]);
    const expired = report.scenarios.find(({ scenario }) => scenario === 'nobody decides in time');
    expect(expired?.end).toBe(end);
    expect(expired?.alerts).toEqual(expect.arrayContaining([...alerts]));
  });

  test('[S6.6] [S4.1] a precondition that already acts is found by the approvals that were never given', async () => {
    const hasty = wire(undefined, {
      precondition: async (_input, { operationId }) => {
        if (!sent.has(operationId)) send(operationId);
        return holds();
      },
      execute: async (_input, { operationId }) => idOf(operationId),
    });
    const report = await rehearse(hasty, { server, only: 'approval' });
    expect(brokenIn(report)).toEqual([
      'rejected',
      'nobody decides in time',
      'approved after it expired',
      'cancelled while it waits for approval',
      'approved after the cancel',
      'the phrase is wrong three times',
    ]);
    expect(report.broken[0]).toBe('rejected: reported as not applied, and the target counts 1');
  });

  test('[S6.6] [S4.5] where the policy asks nobody about the arguments, the report says so', async () => {
    const outOfBand = wire(() => false, {}, { rollback: { kind: 'outOfBand' } });
    const report = await rehearse(outOfBand, { server, only: 'approved' });
    expect(report.approval).toBe('nobody');
    expect(report.skipped).toContainEqual({
      group: 'approval',
      scenario: 'approved',
      reason: 'policy asks nobody about these arguments',
    });
  });
});

describe('an edit in a rehearsal', () => {
  const amounts = new Map<string, number>();
  const noted = (amount: number, operationId: string): Output => {
    amounts.set(operationId, amount);
    send(operationId);
    return idOf(operationId);
  };
  const clerks = wire(
    ({ amount }) => ({ roles: amount > 1_000 ? ['cfo'] : ['clerk'] }),
    {
      execute: async ({ amount }, { operationId }) => noted(amount, operationId),
    },
    { rollback: { kind: 'outOfBand' } },
  );
  const byAmount = async (operationId: string, { args }: { args: object }) =>
    'amount' in args && amounts.get(operationId) === args.amount ? (sent.get(operationId) ?? 0) : 0;

  test('[S6.6] [S4.2] takes effect alone, and is asked about again where policy wants somebody else', async () => {
    const options = { server, only: 'edit', count: byAmount };
    const within = await rehearse(clerks, { ...options, edited: { to: 'DE02', amount: 800 } });
    expect(within.broken).toEqual([]);
    expect(within.notes.join()).not.toContain('does not look at the arguments');
    expect(endsOf(within)).toEqual({
      'nothing goes wrong': 'completed',
      'edited by an approver': 'completed',
      'edited, then approved as it was': 'completed',
      'edited, then called again as it was': 'completed',
      'edited, then its answer lost once': 'completed',
      'edited to what the contract does not take': 'completed',
    });
    const beyond = await rehearse(clerks, { ...options, edited: { to: 'DE02', amount: 2_000 } });
    expect(beyond.broken).toEqual([]);
    expect(endsOf(beyond)).toMatchObject({
      'edited by an approver': 'completed',
      'edited, and the edit rejected': 'failed, nothing applied',
    });
  });

  test('[S6.6] [S4.2] a count that does not look at the arguments is said to show nothing of it', async () => {
    const edited = { to: 'DE02', amount: 800 };
    const report = await rehearse(clerks, { server, only: 'edited by', edited });
    expect(report.broken).toEqual([]);
    expect(report.notes.join()).toContain('does not look at the arguments');
  });
});

describe('a run that continues as new in a rehearsal', () => {
  const clerks = () => ({ roles: ['clerk'] });

  test('[S6.6] [S3.6] keeps what was asked, answered and due: the approval, its expiry, the retry', async () => {
    const report = await rehearse(wire(clerks), { server, only: 'continued' });
    expect(report.broken).toEqual([]);
    expect(endsOf(report)).toEqual({
      'nothing goes wrong': 'completed',
      'continued as new while it waits for approval': 'completed',
      'continued as new, and nobody decides in time': 'failed, nothing applied',
      'continued as new while it waits to retry': 'completed',
    });
  });

  test('[S6.6] [S3.6] a precondition that already acts is found by the expiry that comes in the next run', async () => {
    const hasty = wire(clerks, {
      precondition: async (_input, { operationId }) => {
        if (!sent.has(operationId)) send(operationId);
        return holds();
      },
      execute: async (_input, { operationId }) => idOf(operationId),
    });
    const report = await rehearse(hasty, { server, only: 'continued' });
    expect(brokenIn(report)).toEqual(['continued as new, and nobody decides in time']);
    expect(report.broken[0]).toContain('reported as not applied, and the target counts 1');
  });
});

describe('an interrupt in a rehearsal', () => {
  test('[S6.6] [S7.2] at each phase: what runs finishes, nothing else begins, and the effect stays one', async () => {
    const report = await rehearse(wire(undefined), { server, only: 'interrupt' });
    expect(report.broken).toEqual([]);
    expect(endsOf(report)).toEqual({
      'nothing goes wrong': 'completed',
      'approved while interrupted, then resumed': 'completed',
      'interrupted before a retry': 'completed',
      'interrupted, then cancelled': 'cancelled, nothing applied',
      'interrupted, and crash before the claim': 'completed',
      'interrupted between intent and call': 'completed',
      'interrupted between call and verify': 'completed',
      'interrupted between verify and commit': 'completed',
      'interrupted during the call': 'completed',
      'interrupted during the call, answer lost': 'completed',
      'interrupted while it is not to be seen yet': 'completed',
      'interrupted after the end': 'completed',
    });
  });

  test('[S6.6] [S7.2] a handler that goes on by itself is found: its second try is not held back', async () => {
    const background: Promise<void>[] = [];
    const restless = wire(undefined, {
      execute: async (_input, { operationId }) => {
        send(operationId);
        background.push(new Promise((resolve) => setTimeout(() => resolve(send(operationId)), 300)));
        return idOf(operationId);
      },
    });
    const report = await rehearse(restless, { server, only: 'interrupted during the call' });
    await Promise.all(background);
    expect(brokenIn(report)).toContain('interrupted during the call');
    expect(report.broken.join('; ')).toContain('2 effects');
  });

  test('[S6.6] [S7.4] a target that acts and calls it "later" is found where the cancel came meanwhile', async () => {
    const later = wire(undefined, {
      execute: async (_input, { operationId }) => {
        if (!sent.has(operationId)) {
          send(operationId);
          throw ActionFailure.rateLimited('come back', 10);
        }
        return idOf(operationId);
      },
    });
    const report = await rehearse(later, { server, only: 'cancelled between intent and call' });
    expect(report.broken).toContain(
      'cancelled between intent and call: reported as not applied, and the target counts 1',
    );
  });
});
