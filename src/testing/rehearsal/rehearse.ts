/**
 * `rehearse(action)`: the user's own handlers against the user's own (test) target through every crash point, each
 * failure class, verification and rollback failures, approvals, cancels, interrupts and duplicate deliveries (S6.6).
 *
 * Guarantees: each scenario is a real operation under a key of its own, run by a real worker on a real Temporal server;
 * the target's own count is the oracle; the user's ledger and Temporal are never touched.
 * Does not: clean up the target, where dozens of effects remain; rehearse the engine's own death.
 */
import { randomUUID } from 'node:crypto';
import { asksForMore } from '../../contract/approval-policy.ts';
import { HoldfastError } from '../../contract/error.ts';
import type { Action } from '../../contract/implement-action.ts';
import { planOperation } from '../../contract/plan-operation.ts';
import { redact } from '../../contract/redact.ts';
import type { Rehearsal } from '../../contract/rehearsal.ts';
import type { JsonObject } from '../../task/json.ts';
import type { Plan, PlanApproval } from '../../task/plan.ts';
import { approvalInWords } from './approval-in-words.ts';
import { oracleOf } from './oracle.ts';
import { perform } from './perform.ts';
import { playAll } from './programme.ts';
import type { Play } from './programme.ts';
import type { RehearsalReport, ScenarioReport } from './report.ts';
import type { Stage } from './stage.ts';
import { Stages } from './stages.ts';
import type { StageOptions } from './stage.ts';
import type { EditTerms } from './terms.ts';

export interface RehearseOptions extends Partial<Rehearsal>, StageOptions {
  /** Only scenarios whose group or name contains this. The clean run is always there. */
  only?: string;
  /** How many operations at a time, 1 to 32. Default 6; 1 where the operations of a target get in each other's way. */
  atOnce?: number;
  /** Told of each scenario as it ends. */
  onScenario?(report: ScenarioReport, done: number, of: number): void;
}

const AT_ONCE = 6;
const AT_ONCE_MAX = 32;

/**
 * Options win over the action's own `rehearsal`. Throws `invalid_arguments` where the arguments do not fit the contract,
 * and `invalid_configuration` where nobody says how to count.
 */
export async function rehearse(action: Action, options: RehearseOptions = {}): Promise<RehearsalReport> {
  const { argsOf, editedOf, rehearsal, approval, edited } = directions(action, options);
  const startedAt = Date.now();
  const cast = { rehearsed: action, actions: [action], ...(edited && { edited }) };
  const stages = new Stages(cast, approval, options);
  try {
    const stage = await stages.get(false);
    const play: Play = async (entry, clean) => {
      const key = `rehearsal-${randomUUID()}`;
      const on = await stages.get(entry.scenario.shortHistory === true);
      const oracle = oracleOf(rehearsal, action.contract, on.holdfast.ledger);
      return perform({ stage: on, oracle, ...entry, key, args: argsOf(key), edited: editedOf(key), clean });
    };
    const { performed, skipped } = await playAll(play, {
      terms: stage.terms,
      output: action.contract.output,
      only: options.only,
      atOnce: Math.min(Math.max(1, options.atOnce ?? AT_ONCE), AT_ONCE_MAX),
      onPlayed: ({ report }, done, of) => options.onScenario?.(report, done, of),
    });
    const reports: ScenarioReport[] = [];
    for (const { recount } of performed) reports.push(await recount());
    return await reported(stages, stage, action, {
      scenarios: reports,
      skipped,
      notes: notesOf(stage, rehearsal, performed[0]?.otherwise ?? null),
      args: performed[0]?.args ?? {},
      startedAt,
    });
  } finally {
    await stages.close();
  }
}

/** The options over the action's own; checked before anything is started. */
function directions(action: Action, options: RehearseOptions) {
  const { name } = action.contract;
  const { args, edited: replaced, count, undone } = { ...action.rehearsal, ...given(options) };
  if (count === undefined) {
    throw new HoldfastError(
      'invalid_configuration',
      `Nobody says how the target counts the effects of ${name}. Write it beside the handlers: ` +
        'implementAction(contract, { execute, …, rehearsal: { args, count: async (operationId) => … } }).',
      { details: { action: name } },
    );
  }
  const argsOf = (key: string): JsonObject => (typeof args === 'function' ? args(key) : (args ?? {}));
  const editedOf = (key: string): JsonObject | null =>
    typeof replaced === 'function' ? replaced(key) : (replaced ?? null);
  const { approval = null } = firstPlan(action, argsOf('rehearsal'));
  return {
    argsOf,
    editedOf,
    approval,
    edited: editTerms(action, approval, editedOf('rehearsal')),
    rehearsal: { count, ...(undone && { undone }) },
  };
}

function editTerms(action: Action, approval: PlanApproval | null, args: JsonObject | null): EditTerms | null {
  if (args === null) return null;
  return { asksAgain: asksForMore(approval, firstPlan(action, args).approval ?? null) };
}

function given({ args, edited, count, undone }: RehearseOptions): Partial<Rehearsal> {
  return {
    ...(args && { args }),
    ...(edited && { edited }),
    ...(count && { count }),
    ...(undone && { undone }),
  };
}

/** Throws what the first call would. */
function firstPlan(action: Action, args: JsonObject): Plan {
  const principal = { tenant: 'rehearsal', subject: 'rehearsal', roles: [] };
  return planOperation(action, { args, key: 'rehearsal', principal, hashKey: new Uint8Array(32) }).plan;
}

function notesOf(
  { terms }: Stage,
  { undone }: Pick<Rehearsal, 'undone'>,
  countedOtherwise: number | null,
): string[] {
  return [
    ...(countedOtherwise !== null && countedOtherwise > 0
      ? [
          '`count` does not look at the arguments: that an edit’s took effect, and not those before it, goes unseen.',
        ]
      : []),
    ...(undone === undefined && terms.noRollback === null
      ? ['Without `undone` a rollback that undoes twice goes unseen.']
      : []),
    ...(terms.effect === 'unsafe'
      ? [
          'Nobody dedupes: a worker frozen between intent and send that wakes later sends a second time (S2.11).',
        ]
      : []),
  ];
}

type Found = Pick<RehearsalReport, 'scenarios' | 'skipped' | 'notes' | 'args'> & { startedAt: number };

async function reported(
  stages: Stages,
  stage: Stage,
  { contract }: Action,
  found: Found,
): Promise<RehearsalReport> {
  const { scenarios, skipped, notes, args, startedAt } = found;
  const broken = scenarios.flatMap(({ scenario, broken: promises }) =>
    promises.map((promise) => `${scenario}: ${promise}`),
  );
  return {
    action: contract.name,
    contractVersion: contract.version,
    effect: contract.transactional ? `${contract.effect}, transactional` : contract.effect,
    lookup: stage.terms.lookup,
    rollback: contract.rollback.kind,
    onCancel: contract.onCancel,
    approval: approvalInWords(stage.terms.approval),
    args: redact(args, contract.sensitive.input) as JsonObject,
    ok: broken.length === 0,
    broken,
    scenarios,
    skipped,
    notes,
    startedAt: new Date(startedAt).toISOString(),
    durationMs: Date.now() - startedAt,
    node: process.version,
    audit: await stages.audit(),
  };
}
