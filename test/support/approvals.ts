// Approvals for tests: who is who, and plans that ask for a person.
import type { DecisionMessage } from '../../src/task/approval.ts';
import type { Plan, PlanApproval, Principal } from '../../src/task/plan.ts';
import { planOf } from './plans.ts';
import type { PlanOverrides } from './plans.ts';
import { TaskDriver, scripted } from './task-driver.ts';
import type { Script } from './task-driver.ts';

const person = (subject: string, roles: string[] = []): Principal => ({ tenant: 'local', subject, roles });
/** Asks for the action. */
export const ANN = person('ann', ['buyer']);
export const BOB = person('bob', ['chief']);
export const CAT = person('cat', ['chief', 'cfo']);
/** Without any role. */
export const DAN = person('dan');

export const HOUR_MS = 3_600_000;

export function ruleOf(overrides: Partial<PlanApproval> = {}): PlanApproval {
  return {
    roles: [],
    quorum: 1,
    requesterMayDecide: false,
    expiresInMs: HOUR_MS,
    onExpiry: 'deny',
    escalateTo: [],
    challenge: null,
    mayAnswerOverMcp: false,
    ...overrides,
  };
}

export const asking = (approval: Partial<PlanApproval> = {}, overrides: PlanOverrides = {}): Plan =>
  planOf({ ...overrides, approval: ruleOf(approval) });

/** The plan after an approver's edit, as activity `planEdit` answers it. */
export const editedPlan = (plan: Plan, approval: Partial<PlanApproval> | null = {}): Plan => ({
  ...plan,
  approval: approval === null ? null : ruleOf(approval),
  edited: { by: 'bob', callId: 'action#1', fingerprint: { sent: 'edited-sent', input: 'edited-input' } },
});

export const CLOSED = { kind: 'closed' as const };

/** A task whose approval is open. */
export function opened(
  approval: Partial<PlanApproval> = {},
  script: Script = {},
  overrides: PlanOverrides = {},
): TaskDriver {
  return started(approval, script, overrides).runTo('awaiting_approval');
}

export function started(
  approval: Partial<PlanApproval> = {},
  script: Script = {},
  overrides: PlanOverrides = {},
): TaskDriver {
  // Answers are taken from the script as they are given: one script may serve several tasks.
  const own = Object.fromEntries(Object.entries(script).map(([name, answers]) => [name, [...answers]]));
  return new TaskDriver(asking(approval, overrides), scripted(own));
}

export const ending = ({ outcome }: TaskDriver) => [outcome.status, outcome.effect, outcome.cause];

export const typesOf = ({ events }: TaskDriver) => events.map(({ type }) => type);

export const decision = (message: Partial<DecisionMessage> = {}): DecisionMessage => ({
  kind: 'approve',
  callId: 'action#1',
  by: BOB,
  ...message,
});
