/**
 * An approval and its expiry at the same instant. On the real server: the time-skipping one never answers an update that
 * meets the end of its task, and its clock stands still from then on.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { DecisionReply } from '../../src/task/approval.ts';
import { BOB, decision, ruleOf } from '../support/approvals.ts';
import { committed } from '../support/outcomes.ts';
import { WorkflowStage, isInPhase, planned, stateWhen } from '../support/workflow-stage.ts';

const EXPIRES_MS = 1_000;
const APPROVERS = 10;
const APART_MS = 4;

let stage: WorkflowStage;
beforeAll(async () => {
  stage = await WorkflowStage.open('local');
});
afterAll(() => stage.close());

// Ahead of the expiry, about it, and behind it: whoever wins, everybody hears the same.
test.each([200, 20, 0, -20, -200])(
  'approvals from %i ms before the expiry: one of the two, told alike to approver, caller and audit [S4.3][S4.4][case 24]',
  async (aheadMs) => {
    const { handle, scripted } = await stage.start(
      planned({ approval: ruleOf({ expiresInMs: EXPIRES_MS }) }),
      {
        attempt: [committed],
        close: [{ kind: 'closed' }],
      },
    );
    const { phase } = await stateWhen(handle, isInPhase('awaiting_approval'));
    const at = phase.kind === 'awaiting_approval' ? phase.approval.expiresAt : 0;
    await delay(Math.max(0, at - Date.now() - aheadMs));
    const approve = async (index: number) => {
      await delay(index * APART_MS);
      const message = decision({ by: { ...BOB, subject: `approver-${index}` } });
      return handle
        .executeUpdate<DecisionReply, [typeof message]>('decide', { args: [message] })
        .catch(() => null);
    };
    const replies = await Promise.all(Array.from({ length: APPROVERS }, (_, index) => approve(index)));
    const { status, effect, cause } = await handle.result();
    const approvals = replies.filter((reply) => reply?.code === 'approved');
    expect(approvals).toHaveLength(cause === 'committed' ? 1 : 0);
    expect([status, effect, cause]).toEqual(
      approvals.length === 1 ? ['completed', 'applied', 'committed'] : ['failed', 'none', 'approval_expired'],
    );
    const outcomes = scripted.notes.filter(({ type }) =>
      ['approval_decided', 'approval_expired'].includes(type),
    );
    expect(outcomes).toHaveLength(1);
    expect(scripted.attempts).toHaveLength(approvals.length);
  },
);
