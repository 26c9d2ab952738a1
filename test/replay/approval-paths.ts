/** The paths on which people are asked, or interrupt: what paths.ts records of them. */
import { setTimeout as delay } from 'node:timers/promises';
import type { PlanEditResult } from '../../src/task/activity-api.ts';
import type { DecisionMessage } from '../../src/task/approval.ts';
import type { PlanApproval } from '../../src/task/plan.ts';
import type { TaskState } from '../../src/task/state.ts';
import { ANN, BOB, CAT, asking, decision, editedPlan, ruleOf } from '../support/approvals.ts';
import { committed, rateLimited } from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import { away } from '../support/scripted-activities.ts';
import type { ActivityScript } from '../support/scripted-activities.ts';
import { isInPhase, planned, stateWhen } from '../support/workflow-stage.ts';
import type { ActionHandle } from '../support/workflow-stage.ts';
import { CLOSED, SOON, duringAttempt, straight } from './path-kinds.ts';
import type { Path } from './path-kinds.ts';

/** `decide` runs once the approval is open. */
function decidedBy(
  decide: (handle: ActionHandle) => Promise<unknown>,
  script: ActivityScript,
  rule: Partial<PlanApproval> = {},
): Path {
  return async (stage) => {
    const own = Object.fromEntries(Object.entries(script).map(([name, answers]) => [name, [...answers]]));
    const { handle } = await stage.play(planned({ ...SOON, approval: ruleOf(rule) }), own, async (played) => {
      await stateWhen(played, isInPhase('awaiting_approval'));
      await decide(played);
    });
    return handle;
  };
}

/** A decision without the kind that its signal's name says. */
function byAlone(message: Partial<DecisionMessage> = {}): Omit<DecisionMessage, 'kind'> {
  const { kind: _kind, ...rest } = decision(message);
  return rest;
}

const EDIT = decision({ kind: 'edit', arguments: { sku: 'A-1', quantity: 2 } });

function replanned(approval: Partial<PlanApproval> | null): PlanEditResult {
  const input = { sku: 'A-1', quantity: 2 };
  const plan = editedPlan({ ...asking(), ...planOf(SOON) }, approval);
  return { kind: 'planned', plan, input, needsApproval: approval !== null, shown: { arguments: input } };
}

export const APPROVAL_PATHS: Readonly<Record<string, Path>> = {
  'approval-approved': decidedBy(
    (handle) => handle.executeUpdate('decide', { args: [decision({ decisionId: 'd-1' })] }),
    { attempt: [committed] },
  ),
  'approval-by-quorum-of-signals': decidedBy(
    async (handle) => {
      await handle.signal('approve', byAlone({ by: ANN }));
      await handle.signal('approve', byAlone({ by: BOB }));
      await handle.signal('approve', byAlone({ by: CAT }));
    },
    { attempt: [committed] },
    { quorum: 2 },
  ),
  'approval-rejected': decidedBy((handle) => handle.signal('reject', byAlone({ reason: 'too much' })), {
    close: [CLOSED],
  }),
  'approval-early': async (stage) => {
    const { workflowId } = stage.scriptFor({ attempt: [committed] });
    const handle = await stage.client.workflow.signalWithStart('action', {
      taskQueue: stage.taskQueue,
      workflowId,
      args: [planned({ ...SOON, approval: ruleOf() })],
      signal: 'approve',
      signalArgs: [byAlone()],
    });
    await handle.result();
    return handle as ActionHandle;
  },
  'approval-expired': straight(() => ({ close: [CLOSED] }), { approval: ruleOf({ expiresInMs: 300 }) }),
  'approval-expiring': straight(() => ({ close: [CLOSED] }), {
    approval: ruleOf({ expiresInMs: 600, warnBeforeMs: 300 }),
  }),
  'sla-missed': straight(() => ({ attempt: [rateLimited(600), committed] }), { deadlines: { slaMs: 200 } }),
  'sla-missed-during': duringAttempt(
    (handle) => stateWhen(handle, ({ alertsDue, slaMissed }) => slaMissed === true && alertsDue.length === 0),
    { attempt: [committed] },
    { deadlines: { slaMs: 200 } },
  ),
  'sla-kept': straight(() => ({ attempt: [committed] }), { deadlines: { slaMs: 3_600_000 } }),
  'approval-halted': async (stage) => {
    const { handle } = await stage.play(
      planned({ ...SOON, approval: ruleOf({ expiresInMs: 300, onExpiry: 'halt' }) }),
      { preview: [away], attempt: [committed] },
      async (played) => {
        await stateWhen(played, isInPhase('needs_attention'));
        await played.signal('resolve', { as: 'not_applied', by: 'eve' });
        const again = ({ phase, approvalCycle }: TaskState) =>
          phase.kind === 'awaiting_approval' && approvalCycle === 2;
        await stateWhen(played, again);
        await played.signal('approve', byAlone({ callId: 'action#2' }));
      },
    );
    return handle;
  },
  'approval-reminded-and-escalated': async (stage) => {
    const rule = { onExpiry: 'escalate', escalateTo: ['cfo'], roles: ['owner'], expiresInMs: 400 } as const;
    const approval = ruleOf({ ...rule, escalateTo: ['cfo'], roles: ['owner'] });
    const { handle } = await stage.play(
      planned({ ...SOON, approval }),
      { attempt: [committed] },
      async (played) => {
        await stateWhen(
          played,
          ({ phase }) => phase.kind === 'awaiting_approval' && phase.approval.hasEscalated,
        );
        await played.signal('approve', byAlone({ by: CAT }));
      },
    );
    return handle;
  },
  'approval-edited': decidedBy((handle) => handle.executeUpdate('decide', { args: [EDIT] }), {
    edit: [replanned(null)],
    attempt: [committed],
  }),
  'approval-edited-again-asked': decidedBy(
    async (handle) => {
      await handle.signal('edit', EDIT);
      await stateWhen(
        handle,
        ({ phase, approvalCycle }) => phase.kind === 'awaiting_approval' && approvalCycle === 2,
      );
      await handle.executeUpdate('decide', { args: [decision({ callId: 'action#2', by: CAT })] });
    },
    { edit: [replanned({ roles: ['cfo'] })], attempt: [committed] },
  ),
  'approval-edit-refused': decidedBy(
    async (handle) => {
      await handle.executeUpdate('decide', { args: [EDIT] });
      await handle.signal('approve', byAlone());
    },
    { edit: [{ kind: 'refused', message: 'no such argument' }], attempt: [committed] },
  ),
  'approval-cancelled': decidedBy((handle) => handle.executeUpdate('cancelTask', { args: [{ by: 'ann' }] }), {
    close: [CLOSED],
  }),
  'approval-overtaken': straight(
    () => ({ preview: [{ kind: 'overtaken', rowAttempt: 3 }], attempt: [committed] }),
    {
      approval: ruleOf(),
    },
  ),
  'interrupted-resumed': async (stage) => {
    const { handle } = await stage.play(
      planned(SOON),
      { attempt: [rateLimited(200), committed] },
      async (played) => {
        await stateWhen(played, ({ phase, attempt }) => phase.kind === 'ready' && attempt === 1);
        await played.signal('interrupt', { by: 'eve', reason: 'look first' });
        await delay(400);
        await played.executeUpdate('resumeTask', { args: [{ by: 'eve' }] });
      },
    );
    return handle;
  },
  'interrupted-during': duringAttempt(
    async (handle) => {
      await handle.executeUpdate('interruptTask', { args: [{ by: 'eve' }] });
      await handle.signal('interrupt');
    },
    { attempt: [committed] },
  ),
};
