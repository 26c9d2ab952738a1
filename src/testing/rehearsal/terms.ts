/**
 * What an action promises, as far as a rehearsal's verdicts depend on it, and its contract with the waits shortened.
 *
 * Nothing that decides what happens is changed: effect class, lookup, rollback plan, approval policy, cancel policy and
 * the attempt's own deadline stay. Shortened are the pauses between tries, and how long a lost request may still be on
 * its way.
 */
import type { ActionContract } from '../../contract/define-action.ts';
import { handlersPresent } from '../../contract/implement-action.ts';
import type { Action } from '../../contract/implement-action.ts';
import type { PlanApproval } from '../../task/plan.ts';
import type { Scripts } from './scripts.ts';

/** Each retry is a wait; three show what the rest would. */
const RETRIES_MAX = 3;
const INITIAL_INTERVAL_MS_MAX = 50;
const INTERVAL_MS_MAX = 500;
const SETTLE_MS_MAX = 1_000;
/** Shorter, and a busy machine would lose attempts that no scenario meant to lose. */
const HEARTBEAT_MS = 5_000;

export interface EditTerms {
  /** S4.2: policy for them asks for more than the word of who made the edit. */
  asksAgain: boolean;
}

/** Facts of an action. */
export interface Terms {
  effect: ActionContract['effect'];
  lookup: 'none' | 'plain' | 'conclusive';
  /** Why there is no verify handler; null when there is one. */
  noVerify: string | null;
  /** Why nothing is ever rolled back; null when there is a rollback handler that may be called. */
  noRollback: string | null;
  hasVerifyRollback: boolean;
  hasPrecondition: boolean;
  onCancel: ActionContract['onCancel'];
  cancelAttempt: ActionContract['cancelAttempt'];
  /** Who must say yes to the rehearsal's arguments (S4, S6.4); null when nobody. */
  approval: PlanApproval | null;
  /** Of the arguments that an approver makes of the rehearsal's; null where none are given. */
  edited: EditTerms | null;
  transactional: boolean;
  /** Retries of the rehearsal; 0 where the contract allows none. */
  retries: number;
}

export function termsOf(
  action: Action,
  approval: PlanApproval | null,
  edited: EditTerms | null = null,
): Terms {
  const { contract, handlers } = action;
  const { effect, onCancel, cancelAttempt, transactional, retry, rollback } = contract;
  const undoes = rollback.kind === 'inBand' || rollback.kind === 'compensate';
  return {
    effect,
    lookup: handlersPresent(action).lookup,
    noVerify: handlers.verify === undefined ? (contract.noVerify ?? 'there is no verify handler') : null,
    noRollback: undoes && effect !== 'safe' ? null : `rollback ${rollback.kind}: ${whyNot(rollback)}`,
    hasVerifyRollback: handlers.verifyRollback !== undefined,
    hasPrecondition: handlers.precondition !== undefined,
    onCancel,
    cancelAttempt,
    approval,
    edited,
    transactional,
    retries: Math.min(retry.maximumRetries, RETRIES_MAX),
  };
}

function whyNot({ kind, reason }: ActionContract['rollback']): string {
  return reason ?? (kind === 'outOfBand' ? 'a person undoes it' : 'nothing is undone');
}

/** The action as the rehearsal calls it, under scripts. Always dispatched: every fault point is passed there. */
export function rehearsable({ contract, handlers }: Action, scripts: Pick<Scripts, 'direct'>): Action {
  const { deadlines, retry, ...rest } = contract;
  return Object.freeze({
    handlers: scripts.direct(handlers),
    contract: Object.freeze({
      ...rest,
      inline: false as const,
      attach: false,
      deadlines: Object.freeze({
        ...deadlines,
        settleMs: Math.min(deadlines.settleMs, SETTLE_MS_MAX),
        heartbeatMs: HEARTBEAT_MS,
      }),
      retry: Object.freeze({
        maximumRetries: Math.min(retry.maximumRetries, RETRIES_MAX),
        initialIntervalMs: Math.min(retry.initialIntervalMs, INITIAL_INTERVAL_MS_MAX),
        maximumIntervalMs: Math.min(retry.maximumIntervalMs, INTERVAL_MS_MAX),
      }),
    }),
  });
}
