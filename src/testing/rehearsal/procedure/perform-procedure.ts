/** Plays one scenario of a procedure and asks each step's target what took place; again when the rehearsal is over. */
import type { TaskAnswer } from '../../../client/task-client.ts';
import { APPROVAL_ACTION } from '../../../task/approval.ts';
import type { JsonObject } from '../../../task/json.ts';
import { endOf } from '../endings.ts';
import type { Oracle } from '../oracle.ts';
import type { ScenarioReport, StepReport } from '../report.ts';
import type { Stage } from '../stage.ts';
import type { Course, CourseStep } from './course.ts';
import { brokenByProcedure } from './laws.ts';
import type { AskedStep, ProcedureScenario } from './procedure-scenario.ts';
import { ProcedureScene } from './procedure-scene.ts';

/** How the targets count, by action; null for what changes nothing. */
export type Oracles = (action: string) => Oracle | null;

export interface ProcedurePerformance {
  stage: Stage;
  oracles: Oracles;
  scenario: ProcedureScenario;
  key: string;
  args: JsonObject;
  /** Of the clean run; empty before it. */
  steps: readonly CourseStep[];
}

export interface PlayedProcedure {
  report: ScenarioReport;
  course: Course;
  asked: AskedStep[];
  /** Of the steps that came after what was refused, those that began all the same. */
  goesOn: string[];
  recount(): Promise<ScenarioReport>;
}

export async function performProcedure(performance: ProcedurePerformance): Promise<PlayedProcedure> {
  const { stage, scenario, key, args, steps } = performance;
  const startedAt = Date.now();
  const scene = new ProcedureScene(
    stage.scene(args, key, (contract) => contract, undefined),
    stage,
    steps,
  );
  for (const [name, script] of Object.entries(scenario.scripts(scene))) {
    const step = steps.find((each) => each.step === name);
    if (step !== undefined) scene.direct(step, script);
  }
  const answer = await played(scenario, scene);
  const durationMs = Date.now() - startedAt;
  const { report, course } = await judged(performance, scene, answer, durationMs);
  const asked = askedIn(scene, course);
  const goesOn = steps.filter(
    ({ after, ...step }) =>
      after.some((before) => scene.says.has(before)) &&
      scene.partOf(scene.operationIdOf(step)).calls.execute !== undefined,
  );
  return {
    report,
    course,
    asked,
    goesOn: goesOn.map(({ step }) => step),
    recount: () => recounted(performance, scene, answer, report),
  };
}

function askedIn({ asked }: ProcedureScene, { steps }: Course): AskedStep[] {
  return steps.flatMap((step) => {
    const onExpiry = asked.get(step.step);
    return onExpiry === undefined ? [] : [{ ...step, isGate: step.action === APPROVAL_ACTION, onExpiry }];
  });
}

async function played(scenario: ProcedureScenario, scene: ProcedureScene): Promise<TaskAnswer | null> {
  try {
    if (scenario.drive) return await scenario.drive(scene);
    await scene.call();
    return await scene.wait();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    scene.scene.objections.push(`it could not be played to its end: ${why}`);
    return null;
  }
}

async function judged(
  { stage, scenario, oracles, steps: known, key }: ProcedurePerformance,
  scene: ProcedureScene,
  answer: TaskAnswer | null,
  durationMs: number,
): Promise<{ report: ScenarioReport; course: Course }> {
  const { ledger } = stage.holdfast;
  const { taskId, operationId, objections } = scene.scene;
  const { course, steps: said } = await scene.seen();
  const begun = new Set(course.steps.map(({ step }) => step));
  const all = [...course.steps, ...known.filter(({ step }) => !begun.has(step))];
  const steps = await Promise.all(
    all.map((each) => {
      const found = said.find(({ step }) => step === each.step);
      return counted(scene, each, found === undefined ? null : (found.effect ?? 'unknown'), oracles);
    }),
  );
  const [audit, verdict, alerts] = await Promise.all([
    ledger.audit({ taskId }),
    ledger.verifyAudit({ taskId }),
    ledger.alerts({ tenant: stage.principal.tenant, taskId }),
  ]);
  const end = answer === null ? 'never' : endOf(answer);
  const told = alerts.map(({ type }) => type).toReversed();
  const broken = brokenByProcedure({
    end,
    allowed: scenario.allowed,
    steps,
    committed: course.committed,
    undone: scene.undone,
    alerts: told,
    auditBreak: verdict.ok ? null : `entry ${verdict.seq}: ${verdict.reason}`,
    objections,
  });
  const report: ScenarioReport = {
    group: scenario.group,
    scenario: scenario.name,
    rules: [...scenario.rules],
    verdict: broken.length === 0 ? 'kept' : 'broken',
    broken,
    key,
    operationId,
    taskId,
    effects: sum(steps.map(({ effects }) => effects)),
    undone: sum(steps.map(({ undone }) => undone)),
    end,
    allowed: [...scenario.allowed],
    calls: summed(steps),
    alerts: told,
    audit: { intact: verdict.ok, entries: audit.length, lastHash: audit.at(-1)?.hash ?? null },
    durationMs,
    steps,
  };
  return { report, course };
}

async function counted(
  scene: ProcedureScene,
  { step, action }: CourseStep,
  said: StepReport['said'],
  oracles: Oracles,
): Promise<StepReport> {
  const operationId = scene.operationIdOf({ step, action });
  const { calls, input } = scene.partOf(operationId);
  const oracle = oracles(action);
  const key = `${scene.scene.taskId}/${step}`;
  const count = await oracle?.(operationId, { key, args: input ?? {} });
  const { objections } = scene.scene;
  if (count && count.problem !== null && !objections.includes(`step ${step}: ${count.problem}`))
    objections.push(`step ${step}: ${count.problem}`);
  return {
    step,
    action,
    operationId,
    said,
    effects: count?.effects ?? null,
    undone: count?.undone ?? null,
    calls: { ...calls },
  };
}

/** Null where nothing was counted. */
function sum(counts: readonly (number | null)[]): number | null {
  const known = counts.filter((count) => count !== null);
  return known.length === 0 ? null : known.reduce((total, count) => total + count, 0);
}

function summed(steps: readonly StepReport[]): ScenarioReport['calls'] {
  const total: ScenarioReport['calls'] = {};
  for (const { calls } of steps)
    for (const [name, times] of Object.entries(calls) as [keyof typeof total, number][])
      total[name] = (total[name] ?? 0) + times;
  return total;
}

async function recounted(
  performance: ProcedurePerformance,
  scene: ProcedureScene,
  answer: TaskAnswer | null,
  earlier: ScenarioReport,
): Promise<ScenarioReport> {
  const { report: now } = await judged(performance, scene, answer, earlier.durationMs);
  if (now.effects === earlier.effects && now.undone === earlier.undone) return now;
  const change = `the targets counted ${earlier.effects} when the task ended and ${now.effects} when the rehearsal did`;
  return { ...now, broken: [...now.broken, change], verdict: 'broken' };
}
