/** What the recorded paths are made of: how each kind is started, spoken to and waited for. */
import { deferred } from '../support/deferred.ts';
import type { PlanOverrides } from '../support/plans.ts';
import type { ActivityScript } from '../support/scripted-activities.ts';
import { planned } from '../support/workflow-stage.ts';
import type { ActionHandle, WorkflowStage } from '../support/workflow-stage.ts';

/** Plays one path and answers with its workflow, ended. */
export type Path = (stage: WorkflowStage) => Promise<ActionHandle>;

export const SOON: PlanOverrides = { retry: { initialIntervalMs: 50, maximumIntervalMs: 200 } };
export const CLOSED = { kind: 'closed' as const };
export function straight(
  script: () => ActivityScript,
  overrides: PlanOverrides = {},
  argument?: unknown,
): Path {
  return async (stage) => (await stage.play(argument ?? planned({ ...SOON, ...overrides }), script())).handle;
}

/** `during` runs while the first attempt waits for it. */
export function duringAttempt(
  during: (handle: ActionHandle) => Promise<unknown>,
  script: ActivityScript,
  overrides: PlanOverrides = {},
): Path {
  return async (stage) => {
    const [asked, gate] = [deferred(), deferred()];
    const [first, ...rest] = script.attempt ?? [];
    const gated = async () => (asked.resolve(), await gate.promise, first as never);
    const played = await stage.play(
      planned({ ...SOON, ...overrides }),
      { ...script, attempt: [gated, ...rest] },
      async (handle) => {
        await asked.promise;
        await during(handle);
        gate.resolve();
      },
    );
    return played.handle;
  };
}
