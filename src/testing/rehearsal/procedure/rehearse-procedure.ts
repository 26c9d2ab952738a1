/**
 * `rehearseProcedure`: a user's procedure through a failure, a crash, a cancel and an interrupt at each of its steps, and
 * through undoing that goes wrong (S6.3, S6.6). What `rehearse` is for one action; each step's target counts.
 */
import { randomUUID } from 'node:crypto';
import { HoldfastError } from '../../../contract/error.ts';
import type { Action } from '../../../contract/implement-action.ts';
import { planOperation } from '../../../contract/plan-operation.ts';
import { redact } from '../../../contract/redact.ts';
import type { JsonObject } from '../../../task/json.ts';
import { eachAtMost } from '../at-once.ts';
import { approvalInWords } from '../approval-in-words.ts';
import { END } from '../endings.ts';
import { oracleOf } from '../oracle.ts';
import type { RehearsalReport, ScenarioReport } from '../report.ts';
import type { Stage } from '../stage.ts';
import { Stages } from '../stages.ts';
import type { StageOptions } from '../stage.ts';
import { termsOf } from '../terms.ts';
import type { Course } from './course.ts';
import { performProcedure } from './perform-procedure.ts';
import type { Oracles, PlayedProcedure } from './perform-procedure.ts';
import type { KnownStep, ProcedureScenario } from './procedure-scenario.ts';
import { scenariosOf } from './step-scenarios.ts';

export interface RehearseProcedureOptions extends StageOptions {
  /** What it is called with; a function where a target takes the same only once. */
  args: JsonObject | ((key: string) => JsonObject);
  /** Absolute path of the file that exports its code. */
  code: string;
  /** Those that its steps name, each with its `rehearsal`. */
  actions: readonly Action[];
  /** Only scenarios whose group or name contains this. The clean run is always there. */
  only?: string;
  /** How many runs at a time, 1 to 32. Default 4; 1 where the operations of a target get in each other's way. */
  atOnce?: number;
  /** Told of each scenario as it ends. */
  onScenario?(report: ScenarioReport, done: number, of: number): void;
}

const AT_ONCE = 4;
const AT_ONCE_MAX = 32;

const clean: ProcedureScenario = {
  group: 'clean',
  name: 'nothing goes wrong',
  rules: ['S6.3'],
  scripts: () => ({}),
  allowed: [END.completed],
};

/**
 * Throws `invalid_arguments` where the arguments do not fit the procedure's contract, and `invalid_configuration` where
 * nobody says how the target of one of its steps counts.
 */
export async function rehearseProcedure(
  procedure: Action,
  options: RehearseProcedureOptions,
): Promise<RehearsalReport> {
  const { args, actions, code, only, onScenario } = options;
  const argsOf = (key: string): JsonObject => (typeof args === 'function' ? args(key) : args);
  const principal = { tenant: 'rehearsal', subject: 'rehearsal', roles: [] };
  const request = { args: argsOf('rehearsal'), key: 'rehearsal', principal, hashKey: new Uint8Array(32) };
  const { approval = null } = planOperation(procedure, request).plan;
  const startedAt = Date.now();
  const stages = new Stages({ rehearsed: procedure, actions, code }, approval, options);
  try {
    const stage = await stages.get(false);
    const play = async (
      scenario: ProcedureScenario,
      steps: readonly KnownStep[],
    ): Promise<PlayedProcedure> => {
      const key = `rehearsal-${randomUUID()}`;
      const on = await stages.get(scenario.shortHistory === true);
      return performProcedure({
        stage: on,
        oracles: oraclesOf(actions, on),
        scenario,
        key,
        args: argsOf(key),
        steps,
      });
    };
    const first = await play(clean, []);
    const isClean = first.report.end === END.completed;
    const scenarios = isClean ? scenariosOf(knownSteps(first.course, actions), first.asked) : [];
    const chosen = scenarios.filter(
      ({ group, name }) => only === undefined || `${group} ${name}`.includes(only),
    );
    const of = chosen.length + 1;
    onScenario?.(first.report, 1, of);
    const played = new Map<ProcedureScenario, PlayedProcedure>();
    const atOnce = Math.min(Math.max(1, options.atOnce ?? AT_ONCE), AT_ONCE_MAX);
    await eachAtMost(atOnce, chosen, async (scenario) => {
      const each = await play(scenario, knownSteps(first.course, actions));
      played.set(scenario, each);
      onScenario?.(each.report, played.size + 1, of);
    });
    const reports: ScenarioReport[] = [];
    for (const each of [first, ...chosen.flatMap((scenario) => played.get(scenario) ?? [])])
      reports.push(await each.recount());
    const left = scenarios.filter((scenario) => !chosen.includes(scenario));
    return await reported(stages, stage, procedure, request.args, reports, {
      startedAt,
      course: first.course,
      goingOn: [...played].flatMap(([{ name }, { goesOn }]) =>
        goesOn.map((step) => `${name}: ${step} began all the same; see that this is meant.`),
      ),
      skipped: left.map(({ group, name }) => ({ group, scenario: name, reason: 'left out by `only`' })),
    });
  } finally {
    await stages.close();
  }
}

function knownSteps({ steps }: Course, actions: readonly Action[]): KnownStep[] {
  return steps.flatMap((step) => {
    const action = actions.find(({ contract }) => contract.name === step.action);
    return action === undefined ? [] : [{ ...step, terms: termsOf(action, null) }];
  });
}

/** Asked of each action once one of its steps is to be counted. */
function oraclesOf(actions: readonly Action[], { holdfast: { ledger } }: Stage): Oracles {
  return (name) => {
    const action = actions.find(({ contract }) => contract.name === name);
    if (action === undefined || action.contract.effect === 'safe') return null;
    if (action.rehearsal !== undefined) return oracleOf(action.rehearsal, action.contract, ledger);
    throw new HoldfastError(
      'invalid_configuration',
      `Nobody says how the target counts the effects of ${name}, a step of the procedure. Write it beside the handlers: ` +
        'implementAction(contract, { execute, …, rehearsal: { args, count: async (operationId) => … } }).',
      { details: { action: name } },
    );
  };
}

async function reported(
  stages: Stages,
  stage: Stage,
  { contract }: Action,
  args: JsonObject,
  scenarios: ScenarioReport[],
  {
    startedAt,
    course,
    skipped,
    goingOn,
  }: Pick<RehearsalReport, 'skipped'> & { startedAt: number; course: Course; goingOn: string[] },
): Promise<RehearsalReport> {
  const broken = scenarios.flatMap(({ scenario, broken: promises }) =>
    promises.map((promise) => `${scenario}: ${promise}`),
  );
  return {
    action: contract.name,
    contractVersion: contract.version,
    effect: `a procedure: ${course.steps.map(({ step }) => step).join(', ')}`,
    lookup: 'of each step, by its contract',
    rollback: 'of each step, by its contract, newest first',
    onCancel: 'rollback',
    approval: approvalInWords(stage.terms.approval),
    args: redact(args, contract.sensitive.input) as JsonObject,
    ok: broken.length === 0,
    broken,
    scenarios,
    skipped,
    notes: [
      'Only the steps that the clean run took were rehearsed: branches it did not take were not.',
      ...goingOn,
    ],
    startedAt: new Date(startedAt).toISOString(),
    durationMs: Date.now() - startedAt,
    node: process.version,
    audit: await stages.audit(),
  };
}
