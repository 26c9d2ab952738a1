/**
 * Every path that workflow `action` can take, as a script for a real server. `record.ts` plays each and keeps its
 * history; `replay.test.ts` wants one for each. A new path through the workflow gets a line here.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { Context } from '@temporalio/activity';
import type { WorkflowHandle } from '@temporalio/client';
import type { BareStart, PlanTaskResult } from '../../src/task/activity-api.ts';
import { deferred } from '../support/deferred.ts';
import {
  RESULT,
  attention,
  committed,
  doubt,
  mismatch,
  notSent,
  notYet,
  rateLimited,
  released,
  unknown,
} from '../support/outcomes.ts';
import { planOf } from '../support/plans.ts';
import type { PlanOverrides } from '../support/plans.ts';
import { away } from '../support/scripted-activities.ts';
import type { ActivityScript } from '../support/scripted-activities.ts';
import { isInPhase, planned, stateWhen } from '../support/workflow-stage.ts';
import type { ActionHandle, WorkflowStage } from '../support/workflow-stage.ts';
import { APPROVAL_PATHS } from './approval-paths.ts';
import { CLOSED, SOON, duringAttempt, straight } from './path-kinds.ts';
import type { Path } from './path-kinds.ts';
import { REMOTE_PATHS } from './remote-paths.ts';

const LEDGER_SAYS: ActivityScript['resolve'] = [({ end }) => ({ end })];
const BARE: BareStart = {
  v: 1,
  action: 'reserve_inventory',
  input: { sku: 'A-1' },
  key: 'order-1',
  principal: { tenant: 'local', subject: 'ann', roles: [] },
};

function resolvedAs(as: string, script: ActivityScript, by: 'signal' | 'update' = 'signal'): Path {
  return async (stage) => {
    const { handle } = await stage.play(
      planned(SOON),
      { ...script, resolve: [...(LEDGER_SAYS ?? [])] },
      async (played) => {
        await stateWhen(played, isInPhase('needs_attention'));
        if (by === 'signal') await played.signal('resolve', { as, by: 'eve', note: 'looked' });
        else await played.executeUpdate('resolveTask', { args: [{ as, by: 'eve' }] });
      },
    );
    return handle;
  };
}

const whileReady =
  (act: (handle: ActionHandle) => Promise<unknown>): Path =>
  async (stage) => {
    const { handle } = await stage.play(
      planned(),
      { attempt: [rateLimited(3_600_000)], close: [CLOSED] },
      async (played) => {
        await stateWhen(played, ({ phase, attempt }) => phase.kind === 'ready' && attempt === 1);
        await act(played);
      },
    );
    return handle;
  };

/** Lost, after the run deadline of 400 ms. */
const lateAndLost = () => delay(500).then(away);

const untilCancelled = () => {
  const context = Context.current();
  const beat = setInterval(() => context.heartbeat(), 50);
  return context.cancelled.finally(() => clearInterval(beat));
};

const cancelBySignal = (handle: ActionHandle) =>
  handle.signal('cancel', { by: 'ann', reason: 'changed my mind' });
const cancelByUpdate = (handle: ActionHandle) =>
  handle.executeUpdate('cancelTask', { args: [{ by: 'ann' }] });
const cancelByEngine = (handle: ActionHandle) => handle.cancel();
const ROLLS_BACK: PlanOverrides = { onCancel: 'rollback' };
const undone = { kind: 'rolledBack' as const };
const retry = { kind: 'retry' as const, failure: notSent };

export const PATHS: Readonly<Record<string, Path>> = {
  inline: straight(() => ({ attempt: [committed] }), { inline: true }),
  'inline-then-dispatched': straight(() => ({ attempt: [released, committed] }), { inline: true }),
  dispatched: straight(() => ({ attempt: [committed] })),
  'retried-not-applied': straight(() => ({ attempt: [released, released, committed] })),
  'retries-exhausted': straight(() => ({ attempt: [released, released], close: [CLOSED] }), {
    retry: { maximumRetries: 1, initialIntervalMs: 50 },
  }),
  'rate-limited': straight(() => ({ attempt: [rateLimited(200), committed] })),
  busy: straight(() => ({ attempt: [{ kind: 'busy', retryAfterMs: 150, reason: 'claimed' }, committed] })),
  'fenced-off': straight(() => ({
    attempt: [{ kind: 'fenceStale', rowAttempt: 7, superseded: false }, committed],
  })),
  lost: straight(() => ({ attempt: [away, away, committed] })),
  'unknown-reconciled': straight(() => ({ attempt: [unknown, committed] })),
  'unknown-settled': straight(() => ({ attempt: [unknown, unknown, released], close: [CLOSED] }), {
    retry: { maximumRetries: 1, initialIntervalMs: 50 },
  }),
  refused: straight(() => ({ attempt: [{ kind: 'refused', reason: 'Out of stock.' }] })),
  permanent: straight(() => ({
    attempt: [
      { kind: 'failed', failure: { kind: 'permanent', code: 'card_declined', message: 'Declined.' } },
    ],
  })),
  conflict: straight(() => ({ attempt: [{ kind: 'conflict', paths: ['/quantity'] }] })),
  superseded: straight(() => ({ attempt: [{ kind: 'fenceStale', rowAttempt: 1, superseded: true }] })),
  replayed: straight(() => ({ attempt: [{ kind: 'committed', result: RESULT, replayed: true }] })),
  'approval-required': straight(() => ({
    attempt: [{ kind: 'needsApproval', reason: 'More than 100.' }],
    close: [CLOSED],
  })),
  'attention-applied': resolvedAs('applied', { attempt: [attention, committed] }),
  'attention-not-applied': resolvedAs('not_applied', { attempt: [attention, committed] }, 'update'),
  'attention-abandoned': resolvedAs('abandoned', { attempt: [away, attention] }),
  'attention-ignored-messages': async (stage) => {
    const script = { attempt: [attention], resolve: [...(LEDGER_SAYS ?? [])] };
    const { handle } = await stage.play(planned(SOON), script, async (played) => {
      await stateWhen(played, isInPhase('needs_attention'));
      await played.signal('resolve', { as: 'perhaps' });
      await cancelBySignal(played);
      await played.signal('resolve', { as: 'abandoned', by: 'eve' });
    });
    return handle;
  },
  'verify-polling': straight(() => ({ attempt: [notYet, notYet, committed] })),
  'verify-deadline': resolvedAs('abandoned', { attempt: [notYet, notYet, attention] }),
  'mismatch-rolled-back': straight(() => ({
    attempt: [mismatch],
    rollback: [retry, { ...undone, remains: 'a fee of 1' }],
  })),
  'rollback-lost': straight(() => ({ attempt: [mismatch], rollback: [away, undone] })),
  'rollback-stuck': resolvedAs('not_applied', {
    attempt: [mismatch],
    rollback: [{ kind: 'attention', failure: doubt }],
  }),
  'rollback-declined': resolvedAs('applied', {
    attempt: [mismatch, committed],
    rollback: [{ kind: 'attention', failure: doubt }],
  }),
  'cancel-with-start': async (stage) => {
    const { workflowId } = stage.scriptFor({ close: [CLOSED] });
    const handle = await stage.client.workflow.signalWithStart('action', {
      taskQueue: stage.taskQueue,
      workflowId,
      args: [planned({ inline: true })],
      signal: 'cancel',
      signalArgs: [{ by: 'ann' }],
    });
    await handle.result();
    return handle as ActionHandle;
  },
  'cancel-before-by-signal': whileReady(cancelBySignal),
  'cancel-before-by-update': whileReady(cancelByUpdate),
  'cancel-before-by-engine': whileReady(cancelByEngine),
  'cancel-during-kept': duringAttempt(cancelBySignal, { attempt: [committed] }),
  'cancel-during-rolled-back': duringAttempt(
    cancelByEngine,
    { attempt: [committed], rollback: [retry, undone] },
    ROLLS_BACK,
  ),
  'cancel-during-released': duringAttempt(cancelByUpdate, { attempt: [released], close: [away, CLOSED] }),
  'cancel-during-aborted': async (stage) => {
    const asked = deferred();
    const script: ActivityScript = {
      attempt: [() => (asked.resolve(), untilCancelled()), released],
      close: [CLOSED],
    };
    const { handle } = await stage.play(
      planned({ ...SOON, cancelAttempt: 'abort' }),
      script,
      async (played) => {
        await asked.promise;
        await cancelBySignal(played);
      },
    );
    return handle;
  },
  'cancel-found-committed': duringAttempt(
    cancelBySignal,
    { attempt: [released], close: [{ kind: 'committed', result: RESULT }], rollback: [undone] },
    ROLLS_BACK,
  ),
  'cancel-found-in-flight': duringAttempt(cancelBySignal, {
    attempt: [released, released],
    close: [{ kind: 'inFlight', rowAttempt: 3 }, CLOSED],
  }),
  'cancel-after-invisible': async (stage) => {
    const script: ActivityScript = { attempt: [notYet, notYet, committed], rollback: [undone] };
    const { handle } = await stage.play(planned({ ...SOON, ...ROLLS_BACK }), script, async (played) => {
      await stateWhen(played, isInPhase('verifying'));
      await cancelBySignal(played);
    });
    return handle;
  },
  'cancel-in-attention': async (stage) => {
    const script: ActivityScript = {
      attempt: [attention],
      resolve: [...(LEDGER_SAYS ?? [])],
      close: [CLOSED],
    };
    const { handle } = await stage.play(planned(SOON), script, async (played) => {
      await stateWhen(played, isInPhase('needs_attention'));
      await cancelByEngine(played);
      await played.signal('resolve', { as: 'not_applied', by: 'eve' });
    });
    return handle;
  },
  deadline: straight(() => ({ attempt: [rateLimited(60_000)], close: [CLOSED] }), {
    deadlines: { runMs: 400 },
  }),
  'deadline-in-doubt': straight(() => ({ attempt: [lateAndLost, released], close: [CLOSED] }), {
    deadlines: { runMs: 400 },
  }),
  ...APPROVAL_PATHS,
  ...REMOTE_PATHS,
  leased: straight(() => ({ attempt: [released, away, committed] }), { lease: leaseOn('recorded') }),
  bare: straight(() => ({ plan: [bareAnswer()], attempt: [committed] }), {}, BARE),
  'bare-lost': straight(() => ({ plan: [away, bareAnswer()], attempt: [committed] }), {}, BARE),
  'bare-refused': straight(() => ({ plan: [bareRefusal()] }), {}, BARE),
  misuse: async (stage) => {
    const { handle } = await stage.start({ v: 1 });
    await handle.result().catch(() => undefined);
    return handle;
  },
};

function bareAnswer(): PlanTaskResult {
  return {
    kind: 'planned',
    plan: planOf({ ...SOON, deadlines: { runMs: 60_000 } }),
    input: { sku: 'A-1' },
    ordinal: 1,
  };
}

function bareRefusal(): PlanTaskResult {
  const error = {
    code: 'operation_in_progress',
    message: 'Another open task owns this operation.',
    details: { taskId: 'other' },
  };
  const end = {
    status: 'failed',
    effect: 'none',
    cause: 'operation_in_progress',
    error,
    cancelRequested: false,
  } as const;
  return { kind: 'refused', end, operationId: 'op_test', result: null, replayed: false };
}

function leaseOn(resource: string) {
  return { id: `lease_${resource}`, resource, leaseMs: 60_000 };
}

/** Workflow `lease` itself: a holder, one who waits and is granted next, both give it back. */
export const LEASE = 'lease';

export const leased = async (stage: WorkflowStage): Promise<WorkflowHandle> => {
  const lease = leaseOn('recorded_lease');
  const [asked, gate] = [deferred(), deferred()];
  const first = await stage.start(planned({ ...SOON, lease }), {
    attempt: [async () => (asked.resolve(), await gate.promise, committed)],
  });
  await asked.promise;
  const next = await stage.start(planned({ ...SOON, lease }), { attempt: [committed] });
  await stateWhen(next.handle, (state) => state.lease?.waiting != null);
  gate.resolve();
  await Promise.all([first.handle.result(), next.handle.result()]);
  return stage.client.workflow.getHandle(lease.id);
};

/** Recorded on a server that suggests to continue as new early: the run before the boundary, and the run after it. */
export const CONTINUED = { before: 'continued-before', after: 'continued-after' };

/** Ends in the run after the boundary; messages have filled the history of the run before. */
export const continued: Path = async (stage) => {
  const script: ActivityScript = { attempt: [away, attention], resolve: [...(LEDGER_SAYS ?? [])] };
  const { handle } = await stage.play(planned(SOON), script, async (played) => {
    await stateWhen(played, isInPhase('needs_attention'));
    for (let sent = 0; sent < 30; sent += 1) await played.signal('resolve', { as: 'perhaps' });
    await stateWhen(played, ({ seq }) => seq > 30);
    await played.signal('resolve', { as: 'abandoned', by: 'eve' });
  });
  return handle;
};
