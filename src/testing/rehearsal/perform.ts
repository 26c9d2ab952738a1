/** Plays one scenario and gathers what there is to judge it by; the target is asked again when the rehearsal is over. */
import type { TaskAnswer } from '../../client/task-client.ts';
import type { ActionContract } from '../../contract/define-action.ts';
import type { JsonObject } from '../../task/json.ts';
import { endOf } from './endings.ts';
import type { CleanRun } from './forge.ts';
import { brokenPromises } from './laws.ts';
import type { Evidence } from './laws.ts';
import type { Counted, Oracle } from './oracle.ts';
import type { ScenarioReport } from './report.ts';
import type { Scenario } from './scenario.ts';
import type { Scene } from './scene.ts';
import type { Stage } from './stage.ts';

export interface Performed {
  report: ScenarioReport;
  args: JsonObject;
  /** Null: it could not be played to its end. */
  answer: TaskAnswer | null;
  /** What the target counts with the arguments that did not take effect; null where there are no others. */
  otherwise: number | null;
  /** Counts again and judges anew: an effect may have landed after the end. */
  recount(): Promise<ScenarioReport>;
}

export interface Performance {
  stage: Stage;
  oracle: Oracle;
  group: string;
  scenario: Scenario;
  key: string;
  args: JsonObject;
  /** What an approver makes of them. */
  edited: JsonObject | null;
  clean: CleanRun | undefined;
}

const unchanged = (contract: ActionContract): ActionContract => contract;

export async function perform(performance: Performance): Promise<Performed> {
  const { stage, oracle, scenario, key, args } = performance;
  const startedAt = Date.now();
  const scene = stage.scene(args, key, scenario.contract ?? unchanged, performance.clean, performance.edited);
  scene.part.script = scenario.script?.(scene) ?? {};
  const before = await oracle(scene.operationId, { key, args });
  scene.expect(
    before.effects === null || before.effects === 0,
    `the target counts ${before.effects} before anything was sent: \`count\` must be of one operation`,
  );
  const answer = await played(scenario, scene);
  const { report, otherwise } = await judged(performance, scene, answer, Date.now() - startedAt);
  return {
    report,
    args,
    answer,
    otherwise,
    recount: () => recounted(performance, scene, answer, report),
  };
}

async function played(scenario: Scenario, scene: Scene): Promise<TaskAnswer | null> {
  try {
    if (scenario.drive) return await scenario.drive(scene);
    await scene.start();
    return await scene.wait();
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    scene.objections.push(`it could not be played to its end: ${why}`);
    return null;
  }
}

async function judged(
  { stage, oracle, group, scenario, key, args: called, edited, clean }: Performance,
  scene: Scene,
  answer: TaskAnswer | null,
  durationMs: number,
): Promise<{ report: ScenarioReport; otherwise: number | null }> {
  const { ledger } = stage.holdfast;
  const { operationId, taskId } = scene;
  const isEdited = scenario.executes === 'edited';
  const [args, others] = isEdited && edited !== null ? [edited, called] : [called, edited];
  const counted = await oracle(operationId, { key, args });
  const otherwise = others === null ? null : (await oracle(operationId, { key, args: others })).effects;
  const [audit, verdict, alerts] = await Promise.all([
    ledger.audit({ taskId }),
    ledger.verifyAudit({ taskId }),
    ledger.alerts({ tenant: stage.principal.tenant, taskId }),
  ]);
  const evidence: Evidence = {
    terms: stage.terms,
    end: answer === null ? 'never' : endOf(answer),
    allowed: scenario.allowed(stage.terms),
    ...countOf(counted, scene),
    replaced: isEdited && clean?.isCountedByArgs === true ? otherwise : null,
    alerts: alerts.map(({ type }) => type).toReversed(),
    auditBreak: verdict.ok ? null : `entry ${verdict.seq}: ${verdict.reason}`,
    objections: scene.objections,
  };
  const broken = brokenPromises(evidence);
  const report: ScenarioReport = {
    group,
    scenario: scenario.name,
    rules: [...scenario.rules],
    verdict: broken.length === 0 ? 'kept' : 'broken',
    broken,
    key,
    operationId,
    taskId,
    effects: counted.effects,
    undone: counted.undone,
    end: evidence.end,
    allowed: [...evidence.allowed],
    calls: { ...scene.part.calls },
    alerts: [...evidence.alerts],
    audit: { intact: verdict.ok, entries: audit.length, lastHash: audit.at(-1)?.hash ?? null },
    durationMs,
  };
  return { report, otherwise };
}

function countOf(counted: Counted, scene: Scene): Pick<Evidence, 'effects' | 'undone'> {
  if (counted.problem !== null && !scene.objections.includes(counted.problem))
    scene.objections.push(counted.problem);
  return { effects: counted.effects, undone: counted.undone };
}

async function recounted(
  performance: Performance,
  scene: Scene,
  answer: TaskAnswer | null,
  earlier: ScenarioReport,
): Promise<ScenarioReport> {
  const { report: now } = await judged(performance, scene, answer, earlier.durationMs);
  if (now.effects === earlier.effects && now.undone === earlier.undone) return now;
  const change = `the target counted ${earlier.effects} when the task ended and ${now.effects} when the rehearsal did`;
  return { ...now, broken: [...now.broken, change], verdict: 'broken' };
}
