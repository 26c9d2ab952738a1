/**
 * What is rehearsed of a procedure (S6.3): each step fails, is lost, is interrupted and is cancelled over, and each undo
 * goes wrong. Made from the steps of its clean run. Pure.
 *
 * A procedure may catch what a step throws and go on, so where a step fails it may also end as completed; what each
 * step's target counts is then held against what the task says of it.
 */
import { mismatch } from '../../../contract/handlers.ts';
import { stepOfCallId } from '../../../task/approval.ts';
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import { afterDone, afterNothing, withRetry } from '../scenarios/doubt.ts';
import { POINTS } from '../scenarios/points.ts';
import { crashOnceAt } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import type { ProcedureScene } from './procedure-scene.ts';
import type { AskedStep, KnownStep, ProcedureScenario } from './procedure-scenario.ts';
import { before, failedAfter, refused, refuses } from './step-ends.ts';
import { cancels, interrupts, stopsWhileUndone } from './step-stops.ts';

/** Soon enough to be waited for. */
const EXPIRES_IN_MS = 1_000;

const reset = (): Error => new Error('rehearsed: the connection was reset');

export function scenariosOf(
  steps: readonly KnownStep[],
  asked: readonly AskedStep[] = [],
): ProcedureScenario[] {
  return [
    ...steps.flatMap((step) => crashes(step)),
    ...steps.flatMap((step) => failures(step, before(step, steps))),
    ...undoing(steps),
    ...asked.flatMap((each) => approvals(each, before(each, steps))),
    ...steps.flatMap((step) => cancels(step, before(step, steps))),
    ...steps.flatMap((step) => interrupts(step, steps)),
    ...stopsWhileUndone(steps),
    ...deliveries,
    ...continued(steps),
    ...asked.map(continuedAsking),
  ];
}

/** The run continues as new after each step: nothing is done twice, and all of it can be undone (S3.6). */
function continued(steps: readonly KnownStep[]): ProcedureScenario[] {
  const last = steps.at(-1);
  // Nothing else can be asked of the ledger while a transaction is open.
  const filled = steps.filter(({ terms }) => !terms.transactional);
  if (last === undefined || filled.length === 0) return [];
  const fill = ({ fillsHistory }: ProcedureScene): Record<string, Script> =>
    Object.fromEntries(filled.map(({ step }) => [step, fillsHistory]));
  const scenario = (
    name: string,
    scripts: ProcedureScenario['scripts'],
    allowed: readonly End[],
  ): ProcedureScenario => ({
    group: 'continued',
    name,
    rules: ['S3.6', 'S6.3'],
    shortHistory: true,
    scripts,
    drive: async (scene) => {
      await scene.call();
      return scene.waitOverRuns();
    },
    allowed,
  });
  const whole = scenario('continued as new after each step', fill, [END.completed]);
  if (filled.every(({ step }) => step === last.step)) return [whole];
  return [
    whole,
    scenario(
      `${last.step}: refused for good after the run continued as new`,
      (scene) => ({ ...fill(scene), [last.step]: refused }),
      failedAfter(before(last, steps)),
    ),
  ];
}

const continuedAsking = ({ step }: AskedStep): ProcedureScenario => ({
  group: 'continued',
  name: `${step}: continued as new while it waits for approval`,
  rules: ['S3.6', 'S4.1'],
  shortHistory: true,
  scripts: (scene) => {
    scene.beforeApproval = async ({ callId }) => {
      if (stepOfCallId(callId) === step) await scene.scene.continuedAsNew();
    };
    return {};
  },
  allowed: [END.completed],
});

/** Somebody says no, or nobody says anything until it is too late: what was committed before is undone (S4.2, S4.4). */
function approvals(
  { step, isGate, action, onExpiry }: AskedStep,
  standing: KnownStep[],
): ProcedureScenario[] {
  const refusedHow = (
    name: string,
    rules: string[],
    says: 'no' | 'nothing',
    allowed: readonly End[],
  ): ProcedureScenario => ({
    group: 'approval',
    name: `${step}: ${name}`,
    rules: ['S6.3', ...rules],
    scripts: (scene) => {
      scene.says.set(step, says);
      if (says === 'nothing') scene.partOf(scene.operationIdOf({ step, action })).expiresInMs = EXPIRES_IN_MS;
      return {};
    },
    allowed,
  });
  const rejected = refusedHow('the approval is rejected', ['S4.2'], 'no', failedAfter(standing));
  // An action's own policy keeps its expiry; reminded or escalated, an approval stays open.
  if (!isGate || (onExpiry !== 'deny' && onExpiry !== 'halt')) return [rejected];
  const allowed = onExpiry === 'deny' ? failedAfter(standing) : [END.person];
  return [rejected, refusedHow('nobody decides in time', ['S4.4'], 'nothing', allowed)];
}

const crashes = ({ step, terms }: KnownStep): ProcedureScenario[] =>
  POINTS.map(({ point, where }) => ({
    group: 'crash',
    name: `${step}: crash ${where}`,
    rules: ['S2.11'],
    scripts: () => ({ [step]: { at: crashOnceAt('effect', point) } }),
    allowed: {
      before_claim: () => [END.completed],
      after_intent: afterNothing,
      after_effect: afterDone,
      after_verify: afterDone,
      after_commit: () => [END.completed],
    }[point](terms),
  }));

function failures(own: KnownStep, standing: KnownStep[]): ProcedureScenario[] {
  const { step, terms } = own;
  const lost: Script = {
    execute: async ({ turn, real }) => {
      const answer = await real();
      if (turn === 1) throw reset();
      return answer;
    },
  };
  const unlike: Script = {
    verify: async ({ real }) => {
      await real();
      return mismatch('rehearsed: not what was asked for');
    },
  };
  return [
    {
      group: 'failure',
      name: `${step}: refused for good`,
      rules: ['S6.3', 'S5'],
      scripts: () => ({ [step]: refused }),
      allowed: failedAfter(standing),
    },
    {
      group: 'failure',
      name: `${step}: answer lost once`,
      rules: ['S6.3', 'S2.4'],
      scripts: () => ({ [step]: lost }),
      allowed: [...withRetry(terms, afterDone(terms)), ...(terms.retries > 0 ? [] : failedAfter(standing))],
    },
    ...(terms.noVerify === null
      ? [
          {
            group: 'failure',
            name: `${step}: not as promised when read back`,
            rules: ['S6.3', 'S2.6'],
            scripts: () => ({ [step]: unlike }),
            allowed: failedAfter(terms.transactional ? standing : [...standing, own]),
          },
        ]
      : []),
  ];
}

/** Everything before the last effect is undone, since that is refused; and that goes wrong. */
function undoing(steps: readonly KnownStep[]): ProcedureScenario[] {
  const last = steps.at(-1);
  if (last === undefined) return [];
  const ends = failedAfter(before(last, steps));
  const undoable = before(last, steps).filter(({ terms }) => terms.noRollback === null);
  const fails = (name: string, step: string, script: Script, allowed: readonly End[]): ProcedureScenario => ({
    group: 'rollback',
    name: `${step}: ${name}`,
    rules: ['S6.3', 'S6.2'],
    scripts: () => ({ [last.step]: refused, [step]: script }),
    allowed,
  });
  return undoable.flatMap(({ step, terms: { retries } }) => [
    fails(
      'undone, failing once',
      step,
      { rollback: ({ turn, real }) => (turn === 1 ? Promise.reject(reset()) : real()) },
      retries > 0 ? ends : [END.person, END.completed],
    ),
    fails(
      'undone, crash between call and verify',
      step,
      { at: crashOnceAt('rollback', 'after_effect') },
      ends,
    ),
    fails('undoing is refused for good', step, { rollback: refuses }, [END.person, END.completed]),
  ]);
}

const deliveries: ProcedureScenario[] = [
  {
    group: 'delivery',
    name: 'the same key twice at once',
    rules: ['S1.5', 'S6.3'],
    scripts: () => ({}),
    drive: async (scene) => {
      const { otherClient } = scene.scene.props;
      await Promise.all([scene.call(), scene.scene.call(otherClient)]);
      return scene.wait();
    },
    allowed: [END.completed],
  },
  {
    group: 'delivery',
    name: 'the same key again after the end',
    rules: ['S1.5', 'S6.3'],
    scripts: () => ({}),
    drive: async (scene) => {
      await scene.call();
      const answer = await scene.wait();
      const again = await scene.scene.call(scene.scene.props.otherClient);
      scene.scene.expect(again.taskId === answer.taskId, 'the repeated call met another task');
      scene.scene.expect(again.replayed, 'the repeated call was not answered as a replay');
      return answer;
    },
    allowed: [END.completed],
  },
];
