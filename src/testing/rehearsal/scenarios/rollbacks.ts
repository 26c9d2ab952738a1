/**
 * The effect is undone (S6.2), and that goes wrong in every way. Each begins with a cancel that meets the committed
 * effect, under a contract that then undoes it, whatever the action's own `onCancel` is.
 */
import { ActionFailure, mismatch } from '../../../contract/handlers.ts';
import type { ActionContract } from '../../../contract/define-action.ts';
import { END } from '../endings.ts';
import { deliverRollback } from '../late-delivery.ts';
import type { End } from '../endings.ts';
import { first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Scene } from '../scene.ts';
import { crashOnceAt, onceAt } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import type { Terms } from '../terms.ts';
import { POINTS } from './points.ts';

const undoing = (contract: ActionContract): ActionContract => ({ ...contract, onCancel: 'rollback' });

/** Cancelled once the effect is committed; `script` is what happens to the rollback. */
function undone(
  scenario: Pick<Scenario, 'name' | 'unless' | 'drive'> & { rules?: string[] },
  script: Script,
  allowed: (terms: Terms) => End[] = () => [END.cancelledAndUndone],
): Scenario {
  return scenarioOf(scenario, () => script, allowed);
}

function scenarioOf(
  scenario: Pick<Scenario, 'name' | 'unless' | 'drive'> & { rules?: string[] },
  scriptOf: () => Script,
  allowed: (terms: Terms) => End[],
): Scenario {
  return {
    ...scenario,
    rules: scenario.rules ?? ['S6.2'],
    unless: (terms) => first(terms.noRollback, scenario.unless?.(terms) ?? null),
    contract: undoing,
    script: (scene) => {
      const script = scriptOf();
      const cancel = onceAt('effect', 'after_commit', async () => void (await scene.cancel()));
      return {
        ...script,
        at: async (place) => {
          await cancel(place);
          await script.at?.(place);
        },
      };
    },
    allowed,
  };
}

/** Retried, where the contract retries at all. */
const afterOneFailure = ({ retries }: Terms): End[] => [retries > 0 ? END.cancelledAndUndone : END.person];

const failing = (turns: number): NonNullable<Script['rollback']> => {
  return ({ turn, real }) =>
    turn <= turns ? Promise.reject(new Error('rehearsed: the connection was reset')) : real();
};

/** The same rollback delivered again once all is over: by nobody's workflow. */
async function undoneAndRepeated(scene: Scene) {
  await scene.start();
  const answer = await scene.wait();
  const before = scene.part.calls.rollback;
  const repeated = await deliverRollback(scene, 2);
  scene.expect(
    repeated.kind === 'rolledBack' || repeated.kind === 'fenceStale',
    `the repeated rollback was answered ${repeated.kind}`,
  );
  scene.expect(scene.part.calls.rollback === before, 'the rollback handler was called once more');
  return answer;
}

const rollbacks: Scenario[] = [
  undone({ name: 'undone' }, {}),
  ...POINTS.map(({ point, where }) =>
    scenarioOf(
      { name: `undone, crash ${where}`, rules: ['S6.2', 'S2.11'] },
      () => ({ at: crashOnceAt('rollback', point) }),
      () => [END.cancelledAndUndone],
    ),
  ),
  undone({ name: 'undone, failing once' }, { rollback: failing(1) }, afterOneFailure),
  undone(
    { name: 'undone, its answer lost once' },
    {
      rollback: async ({ turn, real }) => {
        const answer = await real();
        if (turn === 1) throw new Error('rehearsed: the connection was reset');
        return answer;
      },
    },
    afterOneFailure,
  ),
  undone(
    {
      name: 'undone, not to be seen at first',
      unless: ({ hasVerifyRollback }) => (hasVerifyRollback ? null : 'there is no verifyRollback'),
    },
    {
      verifyRollback: async ({ turn, real }) => {
        const answer = await real();
        return turn === 1 ? mismatch('rehearsed: it still stands') : answer;
      },
    },
    afterOneFailure,
  ),
  undone({ name: 'undoing fails every time' }, { rollback: failing(Infinity) }, () => [END.person]),
  undone(
    { name: 'undoing is refused for good' },
    { rollback: () => Promise.reject(ActionFailure.permanent('rehearsed: refused')) },
    () => [END.person],
  ),
  undone({ name: 'undone, and delivered again', drive: undoneAndRepeated }, {}),
];

export const ROLLBACKS: ScenarioGroup = { group: 'rollback', scenarios: rollbacks };
