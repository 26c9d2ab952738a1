/**
 * The approval grid (S4): what people may do to one call, in every order that went wrong somewhere, on a real Temporal
 * server with a real ledger. A cell's oracle is the payment provider's own books.
 */
import { z } from 'zod';
import { getJson, postJson } from '../../examples/http-json.ts';
import { startProvider } from '../../examples/provider/service.ts';
import type { Provider } from '../../examples/provider/service.ts';
import type { DecisionInput, TaskAnswer } from '../../src/client/task-client.ts';
import { applied, defineAction, implementAction, notApplied, unknown } from '../../src/index.ts';
import type { Principal } from '../../src/index.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';

export interface CellResult {
  cell: string;
  /** What each decision was answered, in order, then how the task ended. */
  expected: string;
  seen: string;
  /** Charges, as the provider counts them. */
  effectsExpected: number;
  effects: number;
  /** What was charged, so that a call is not taken for another one. */
  centsExpected: number;
  cents: number;
  isAsExpected: boolean;
}

interface Cell {
  name: string;
  /** The customer's name chooses the policy. */
  policy: 'plain' | 'short' | 'two' | 'final';
  expected: string;
  effects: number;
  /** Of each effect; default: what was asked for. */
  cents?: number;
  play: (call: Played) => Promise<string[]>;
}

const person = (subject: string, ...roles: string[]): Principal => ({ tenant: 'grid', subject, roles });
const ANN = person('ann', 'chief');
const BOB = person('bob', 'chief');
const CAT = person('cat', 'chief');
const DAN = person('dan', 'clerk');
const PATIENCE_MS = 30_000;
const ASKED_CENTS = 100;

const charge = implementAction(
  defineAction({
    name: 'charge',
    version: 1,
    description: 'Charges a customer once somebody approved it.',
    input: z.object({ customer: z.string(), amountCents: z.int() }),
    output: z.object({ chargeId: z.string() }),
    effect: 'conditional',
    rollback: { kind: 'outOfBand' },
    verify: { none: 'the books are the oracle' },
    approval: ({ customer, amountCents }) => ({
      roles: ['chief'],
      quorum: customer === 'two' || amountCents > 500 ? 2 : 1,
      expiresIn: customer === 'short' ? '1s' : '1h',
      ...(customer === 'final' && { challenge: `charge final ${amountCents}` }),
    }),
  }),
  {
    execute: async ({ customer, amountCents }, context) => {
      const body = { customer, amountCents, currency: 'EUR' };
      return { chargeId: (await postJson<{ chargeId: string }>(at(''), body, context)).chargeId };
    },
    lookup: async (context) => {
      const look = await getJson<{ chargeId: string }>(
        at(`?idempotencyKey=${encodeURIComponent(context.operationId)}`),
        context,
      );
      if (look.kind === 'unreadable') return unknown(look.reason);
      return look.kind === 'found' ? applied({ chargeId: look.body.chargeId }) : notApplied();
    },
  },
);
let providerUrl = '';
const at = (path: string) => `${providerUrl}/charges${path}`;

/** One call whose approval is open, and the hands that are laid on it. */
class Played {
  readonly taskId: string;
  private readonly holdfast: TestHoldfast;

  constructor(holdfast: TestHoldfast, taskId: string) {
    this.holdfast = holdfast;
    this.taskId = taskId;
  }

  async decide(by: Principal, input: DecisionInput, client = this.holdfast.client): Promise<string> {
    const { code } = await client.decide(this.taskId, by, { callId: 'action#1', ...input });
    return code;
  }

  approve = (by: Principal, more: Partial<DecisionInput> = {}) =>
    this.decide(by, { kind: 'approve', ...more });
  reject = (by: Principal) => this.decide(by, { kind: 'reject' });
  replica = () => this.holdfast.newClient();
  wait = (): Promise<TaskAnswer> => this.holdfast.client.wait(this.taskId, ANN, { timeoutMs: PATIENCE_MS });

  async cancel(): Promise<string> {
    return (await this.holdfast.client.cancel(this.taskId, ANN)).code;
  }

  /** The next approval takes a moment to open. */
  async opened(callId: string): Promise<string> {
    for (;;) {
      const { approval, status } = await this.holdfast.client.detail(this.taskId, ANN);
      if (approval?.callId === callId) return status;
    }
  }

  /** A task that was rejected, expired or approved takes a moment to get there. */
  async ended(): Promise<string> {
    for (;;) {
      const answer = await this.wait();
      if (answer.status !== 'awaiting_approval') return `${answer.status} (${answer.cause})`;
    }
  }
}

const DONE = 'completed (committed)';
const REJECTED = 'failed (approval_rejected)';
const sorted = (codes: string[]) => codes.sort().join(' + ');
const wrong = (call: Played) => call.approve(BOB, { challengeAnswer: 'charge final 1' });

const CELLS: readonly Cell[] = [
  {
    name: 'approve',
    policy: 'plain',
    expected: `approved, ${DONE}`,
    effects: 1,
    play: async (call) => [await call.approve(BOB), await call.ended()],
  },
  {
    name: 'double approve',
    policy: 'plain',
    expected: `approved, already_decided, ${DONE}`,
    effects: 1,
    play: async (call) => [await call.approve(BOB), await call.approve(BOB), await call.ended()],
  },
  {
    name: 'the same decision twice',
    policy: 'plain',
    expected: `approved, approved, ${DONE}`,
    effects: 1,
    play: async (call) => [
      await call.approve(BOB, { decisionId: 'click' }),
      await call.approve(BOB, { decisionId: 'click' }),
      await call.ended(),
    ],
  },
  {
    name: 'approve after cancel',
    policy: 'plain',
    expected: 'requested, already_ended, cancelled (cancelled)',
    effects: 0,
    play: async (call) => [await call.cancel(), await call.approve(BOB), await call.ended()],
  },
  {
    name: 'approve after expiry',
    policy: 'short',
    expected: 'failed (approval_expired), approval_expired',
    effects: 0,
    play: async (call) => [await call.ended(), await call.approve(BOB)],
  },
  {
    name: 'edit',
    policy: 'plain',
    expected: `edited, already_decided, ${DONE}`,
    effects: 1,
    cents: 50,
    play: async (call) => [
      await call.decide(BOB, { kind: 'edit', arguments: { customer: 'plain', amountCents: 50 } }),
      await call.approve(CAT),
      await call.ended(),
    ],
  },
  {
    name: 'edit into a stricter rule',
    policy: 'plain',
    expected: `edited_needs_approval, already_decided, awaiting_approval, approval_recorded, approved, ${DONE}`,
    effects: 1,
    cents: 900,
    play: async (call) => [
      await call.decide(BOB, { kind: 'edit', arguments: { customer: 'plain', amountCents: 900 } }),
      await call.approve(CAT),
      await call.opened('action#2'),
      await call.approve(CAT, { callId: 'action#2' }),
      await call.approve(BOB, { callId: 'action#2' }),
      await call.ended(),
    ],
  },
  {
    name: 'approve with other arguments',
    policy: 'plain',
    expected: 'invalid_decision, awaiting_approval',
    effects: 0,
    play: async (call) => [
      await call.approve(BOB, { arguments: { customer: 'plain', amountCents: 1 } }),
      (await call.wait()).status,
    ],
  },
  {
    name: 'edit into another action',
    policy: 'plain',
    expected: 'invalid_edit, awaiting_approval',
    effects: 0,
    play: async (call) => [
      await call.decide(BOB, {
        kind: 'edit',
        action: 'refund',
        arguments: { customer: 'plain', amountCents: 50 },
      }),
      (await call.wait()).status,
    ],
  },
  {
    name: 'deny, then approve',
    policy: 'plain',
    expected: `rejected, already_decided, ${REJECTED}`,
    effects: 0,
    play: async (call) => [await call.reject(BOB), await call.approve(CAT), await call.ended()],
  },
  {
    name: 'wrong role',
    policy: 'plain',
    expected: 'not_allowed, awaiting_approval',
    effects: 0,
    play: async (call) => [await call.approve(DAN), (await call.wait()).status],
  },
  {
    name: 'the requester itself',
    policy: 'plain',
    expected: 'not_allowed, awaiting_approval',
    effects: 0,
    play: async (call) => [await call.approve(ANN), (await call.wait()).status],
  },
  {
    name: 'wrong challenge three times',
    policy: 'final',
    expected: `wrong_challenge, wrong_challenge, wrong_challenge, already_decided, ${REJECTED}`,
    effects: 0,
    play: async (call) => [
      await wrong(call),
      await wrong(call),
      await wrong(call),
      await call.approve(BOB, { challengeAnswer: 'charge final 100' }),
      await call.ended(),
    ],
  },
  {
    name: 'right challenge after a wrong one',
    policy: 'final',
    expected: `wrong_challenge, approved, ${DONE}`,
    effects: 1,
    play: async (call) => [
      await wrong(call),
      await call.approve(BOB, { challengeAnswer: 'charge final 100' }),
      await call.ended(),
    ],
  },
  {
    name: 'quorum of two',
    policy: 'two',
    expected: `approval_recorded, already_decided, approved, ${DONE}`,
    effects: 1,
    play: async (call) => [
      await call.approve(BOB),
      await call.approve(BOB),
      await call.approve(CAT),
      await call.ended(),
    ],
  },
  {
    name: 'two replicas, approve and approve at once',
    policy: 'plain',
    expected: `already_decided + approved, ${DONE}`,
    effects: 1,
    play: async (call) => {
      const approve = (by: Principal) => call.decide(by, { kind: 'approve' }, call.replica());
      return [sorted(await Promise.all([approve(BOB), approve(CAT)])), await call.ended()];
    },
  },
  {
    name: 'two replicas, approve and deny at once',
    policy: 'plain',
    expected: 'one of the two, told alike',
    effects: -1, // as the end says: see effectsOf
    play: async (call) => {
      const [yes, no] = await Promise.all([
        call.decide(BOB, { kind: 'approve' }, call.replica()),
        call.decide(CAT, { kind: 'reject' }, call.replica()),
      ]);
      const told = [yes, no, await call.ended()].join(', ');
      const isOne = [`approved, already_decided, ${DONE}`, `already_decided, rejected, ${REJECTED}`].includes(
        told,
      );
      return [isOne ? 'one of the two, told alike' : told];
    },
  },
];

export class ApprovalGrid {
  private readonly server: TestServer;
  private readonly holdfast: TestHoldfast;
  private readonly provider: Provider;

  private constructor(server: TestServer, holdfast: TestHoldfast, provider: Provider) {
    this.server = server;
    this.holdfast = holdfast;
    this.provider = provider;
  }

  static async open(): Promise<ApprovalGrid> {
    const provider = await startProvider();
    providerUrl = provider.url;
    const server = await openTestServer('local');
    return new ApprovalGrid(server, await createTestHoldfast({ actions: [charge], server }), provider);
  }

  async close(): Promise<void> {
    await this.holdfast.close();
    await this.server.close();
    await this.provider.close();
  }

  /** One after the other, so that the books tell whose effect it was. */
  async play(): Promise<CellResult[]> {
    const results: CellResult[] = [];
    for (const cell of CELLS) results.push(await this.playOne(cell));
    return results;
  }

  private async playOne(cell: Cell): Promise<CellResult> {
    const { client } = this.holdfast;
    const before = this.provider.books();
    const args = { customer: cell.policy, amountCents: ASKED_CENTS };
    const { taskId } = await client.start({ action: 'charge', args, key: cell.name, principal: ANN });
    await client.wait(taskId, ANN, { timeoutMs: PATIENCE_MS });
    const seen = (await cell.play(new Played(this.holdfast, taskId))).join(', ');
    const after = this.provider.books();
    const effects = after.charges - before.charges;
    const cents = after.chargedCents - before.chargedCents;
    const effectsExpected = cell.effects >= 0 ? cell.effects : await this.effectsOf(taskId);
    const centsExpected = effectsExpected * (cell.cents ?? ASKED_CENTS);
    return {
      cell: cell.name,
      expected: cell.expected,
      seen,
      effectsExpected,
      effects,
      centsExpected,
      cents,
      isAsExpected: seen === cell.expected && effects === effectsExpected && cents === centsExpected,
    };
  }

  /** Where chance decides who is first, the books must agree with what the task says. */
  private async effectsOf(taskId: string): Promise<number> {
    return (await this.holdfast.client.get(taskId, ANN)).effect === 'applied' ? 1 : 0;
  }
}
