/**
 * Every transition of an operation's row, as data. docs/ledger.md shows this table; every write of a state goes through
 * `assertTransition`, and test/contract drives all methods from all states to prove that no other is possible.
 */
import assert from 'node:assert/strict';
import type { RowState } from './ledger.ts';

/** `none`: there is no row yet. */
export type From = RowState | 'none';

interface Rule {
  by: string;
  from: readonly From[];
  to: readonly RowState[];
  guard: string;
  /** What is durable in the same transaction, besides the row. */
  together: string;
}

export const EVERY_STATE: readonly RowState[] = [
  'reserved',
  'in_flight',
  'applied',
  'committed',
  'refused',
  'released',
  'failed',
  'rolling_back',
  'rolled_back',
  'attention',
  'abandoned',
];

const CLAIM = '(ordinal, attempt, generation) of the claim are the row’s';
const LIVE_CLAIM = `${CLAIM} and it was not given back`;

/** `to` with several states and `from` with as many: position by position. With one: from each to that one. */
const RULES: readonly Rule[] = [
  {
    by: 'reserve',
    from: ['none'],
    to: ['reserved'],
    guard: 'no row of this operation, no equal open call to attach to',
    together: 'audit, chain head',
  },
  {
    by: 'reserve',
    from: ['reserved', 'released', 'refused'],
    to: ['reserved'],
    guard: 'equal fingerprint, end recorded: the next ordinal',
    together: 'audit, chain head',
  },
  {
    by: 'claim',
    from: ['reserved', 'released'],
    to: ['in_flight'],
    guard: 'executing, no end, newer (ordinal, attempt) or an equal one without a running claim',
    together: 'audit, attempt (the intent)',
  },
  {
    by: 'claim',
    from: ['reserved', 'released', 'in_flight', 'applied'],
    to: ['reserved', 'released', 'in_flight', 'applied'],
    guard: 'to reconcile, no end, newer (ordinal, attempt) or an equal one without a running claim',
    together: 'audit, attempt',
  },
  {
    by: 'intend',
    from: ['reserved', 'released', 'in_flight'],
    to: ['in_flight'],
    guard: LIVE_CLAIM,
    together: 'audit, attempt (the intent)',
  },
  {
    by: 'refuse',
    from: ['reserved', 'released'],
    to: ['refused'],
    guard: 'no end, no running claim of an equal or newer attempt, or a claim of one’s own',
    together: 'audit, attempt, end',
  },
  { by: 'refuse', from: ['in_flight'], to: ['refused'], guard: LIVE_CLAIM, together: 'audit, attempt, end' },
  {
    by: 'release',
    from: ['reserved', 'released', 'in_flight'],
    to: ['released'],
    guard: LIVE_CLAIM,
    together: 'audit, attempt',
  },
  {
    by: 'fail',
    from: ['in_flight', 'applied'],
    to: ['failed'],
    guard: CLAIM,
    together: 'audit, attempt, end, alert if a verification failed',
  },
  {
    by: 'storeApplied',
    from: ['in_flight', 'applied'],
    to: ['applied'],
    guard: CLAIM,
    together: 'audit, attempt',
  },
  {
    by: 'commit',
    from: ['in_flight', 'applied'],
    to: ['committed'],
    guard: CLAIM,
    together: 'audit, attempt, end if given',
  },
  {
    by: 'mismatched',
    from: ['in_flight', 'applied'],
    to: ['rolling_back'],
    guard: CLAIM,
    together: 'audit, attempt, alert',
  },
  {
    by: 'raiseAttention',
    from: ['in_flight', 'applied', 'rolling_back'],
    to: ['attention'],
    guard: CLAIM,
    together: 'audit, attempt, alert',
  },
  {
    by: 'claimRollback',
    from: ['in_flight', 'applied', 'committed', 'rolling_back'],
    to: ['rolling_back'],
    guard: 'no end, (ordinal, attempt) not older than the row’s or the rollback’s',
    together: 'audit, the rollback’s row',
  },
  {
    by: 'claimRollback',
    from: ['none', 'released', 'in_flight'],
    to: ['in_flight'],
    guard: 'the rollback’s own row, with its parent',
    together: 'audit, attempt (the intent)',
  },
  {
    by: 'finishRollback',
    from: ['rolling_back'],
    to: ['rolled_back'],
    guard: 'as its rollback',
    together: 'audit, end, the rollback’s row',
  },
  {
    by: 'finishRollback',
    from: ['in_flight'],
    to: ['committed'],
    guard: `the rollback’s own row; ${CLAIM}; parent rolling_back under the same attempt`,
    together: 'audit, attempt, the parent',
  },
  {
    by: 'releaseRollback',
    from: ['in_flight'],
    to: ['released'],
    guard: `the rollback’s own row; ${CLAIM}`,
    together: 'audit, attempt',
  },
  {
    by: 'rollbackAttention',
    from: ['rolling_back'],
    to: ['attention'],
    guard: 'as its rollback',
    together: 'audit, alert, the rollback’s row',
  },
  {
    by: 'rollbackAttention',
    from: ['in_flight'],
    to: ['attention'],
    guard: `the rollback’s own row; ${CLAIM}; parent rolling_back under the same attempt`,
    together: 'audit, attempt, alert, the parent',
  },
  {
    by: 'closeTask',
    from: ['reserved', 'released'],
    to: ['reserved', 'released'],
    guard: 'task and ordinal are the row’s, no end yet',
    together: 'audit, end, fence raised',
  },
  {
    by: 'resolve',
    from: ['attention'],
    to: ['applied'],
    guard: 'a person said applied; task and ordinal are the row’s',
    together: 'audit, fence raised, end if given',
  },
  {
    by: 'resolve',
    from: ['attention'],
    to: ['released'],
    guard: 'a person said not applied, about the effect; no attempt has reported it as applied',
    together: 'audit, fence raised, end if given',
  },
  {
    by: 'resolve',
    from: ['attention'],
    to: ['rolled_back'],
    guard: 'a person said not applied, about the rollback',
    together: 'audit, fence raised, end if given',
  },
  {
    by: 'resolve',
    from: ['attention'],
    to: ['abandoned'],
    guard: 'a person gave it up',
    together: 'audit, fence raised, end if given',
  },
  {
    by: 'resolve',
    from: ['attention'],
    to: ['committed'],
    guard: 'the rollback’s own row, its parent not applied any more',
    together: 'audit, the parent',
  },
  {
    by: 'recover',
    from: ['reserved', 'released', 'committed', 'rolled_back', 'abandoned'],
    to: ['reserved', 'released', 'committed', 'rolled_back', 'abandoned'],
    guard: 'the engine closed the task, nothing in doubt, no end yet',
    together: 'audit, end',
  },
  {
    by: 'recover',
    from: ['in_flight', 'applied', 'rolling_back', 'attention'],
    to: ['in_flight', 'applied', 'rolling_back', 'attention'],
    guard: 'the engine closed the task: the next ordinal, attempt 0',
    together: 'audit of both tasks, chain head',
  },
  {
    by: 'reserveStep',
    from: ['reserved'],
    to: ['in_flight'],
    guard: 'a procedure’s own row, at its first step; no end, task and ordinal are the row’s',
    together: 'audit, the step’s row',
  },
  {
    by: 'reserveStep',
    from: [...EVERY_STATE],
    to: [...EVERY_STATE],
    guard: 'a step’s row, met by a later run of its procedure: that run’s ordinal, attempt 0',
    together: 'audit of both tasks, chain head',
  },
  {
    by: 'endProcedure',
    from: ['reserved', 'in_flight', 'released'],
    to: ['reserved', 'released', 'released'],
    guard: 'a procedure’s own row, no effect; task and ordinal are the row’s, no end yet',
    together: 'audit, end, ends of its steps',
  },
  {
    by: 'endProcedure',
    from: ['reserved', 'in_flight'],
    to: ['committed'],
    guard: 'a procedure’s own row, steps stand, or it came through',
    together: 'audit, end, ends of its steps',
  },
  {
    by: 'endProcedure',
    from: ['in_flight'],
    to: ['rolled_back'],
    guard: 'a procedure’s own row, all that was committed is undone',
    together: 'audit, end, ends of its steps',
  },
  {
    by: 'endProcedure',
    from: ['in_flight'],
    to: ['abandoned'],
    guard: 'a procedure’s own row, a person gave a step up',
    together: 'audit, end, ends of its steps',
  },
  {
    by: 'recordEnd',
    from: ['committed', 'rolled_back', 'abandoned'],
    to: ['committed', 'rolled_back', 'abandoned'],
    guard: 'no end yet',
    together: 'audit, end',
  },
  {
    by: 'recordLate',
    from: [...EVERY_STATE],
    to: [...EVERY_STATE],
    guard: 'the same attempt has not reported late before',
    together: 'audit, attempt, alert if another execution may have had an effect or a person was asked',
  },
  {
    by: 'recordLate',
    from: ['released'],
    to: ['attention'],
    guard: 'an unsafe effect, denied by a person, that its attempt reports as applied; no end yet',
    together: 'audit, attempt, alert',
  },
];

export interface Transition {
  by: string;
  from: From;
  to: RowState;
  guard: string;
  together: string;
}

/** The table, one line for each pair of states. */
export const TRANSITIONS: readonly Transition[] = RULES.flatMap(({ from, to, ...rest }) =>
  from.map((state, index) => ({
    ...rest,
    from: state,
    to: (to.length === 1 ? to[0] : to[index]) as RowState,
  })),
);

const allowed = new Set(TRANSITIONS.map(({ by, from, to }) => `${by} ${from} ${to}`));

/** Crashes on a transition outside the table: a defect, never an answer to a caller. */
export function assertTransition(by: string, from: From, to: RowState): void {
  assert(allowed.has(`${by} ${from} ${to}`), `${by} may not take an operation from ${from} to ${to}`);
}
