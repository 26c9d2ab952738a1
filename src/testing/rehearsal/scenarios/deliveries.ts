/** The same call delivered twice, late, or by an attempt that everyone took for dead (S1.5, S2.7, S2.11). */
import { isDeepStrictEqual } from 'node:util';
import { END } from '../endings.ts';
import { deliverAttempt } from '../late-delivery.ts';
import { IN_ONE_TRANSACTION, first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Scene } from '../scene.ts';
import { afterNothing } from './doubt.ts';
import { frozenIn } from './frozen.ts';

const FROZEN_UNLESS: Scenario['unless'] = ({ effect, transactional }) =>
  first(transactional && IN_ONE_TRANSACTION, effect === 'safe' && 'a safe action may be asked again at will');

async function twiceAtOnce(scene: Scene) {
  const starts = await Promise.all([scene.call(), scene.call(scene.props.otherClient)]);
  scene.expect(
    starts.every(({ taskId }) => taskId === scene.taskId),
    'two calls of one key met two tasks',
  );
  await scene.start();
  return scene.wait();
}

async function againAfterEnd(scene: Scene) {
  await scene.start();
  const answer = await scene.wait();
  const again = await scene.start(scene.props.otherClient);
  scene.expect(again.taskId === answer.taskId, 'the repeated call met another task');
  scene.expect(again.replayed, 'the repeated call was not answered as a replay');
  scene.expect(isDeepStrictEqual(again.result, answer.result), 'the repeated call was answered otherwise');
  return answer;
}

async function staleAttempt(scene: Scene) {
  await scene.start();
  const answer = await scene.wait();
  const outcome = await deliverAttempt(scene, 1);
  scene.expect(outcome.kind === 'committed', `the late attempt was answered ${outcome.kind}`);
  scene.expect(scene.part.calls.execute === 1, 'execute was called once more');
  return answer;
}

const deliveries: Scenario[] = [
  {
    name: 'the same key twice at once',
    rules: ['S1.5'],
    drive: twiceAtOnce,
    allowed: () => [END.completed],
  },
  {
    name: 'the same key again after the end',
    rules: ['S1.5', 'S2.9'],
    drive: againAfterEnd,
    allowed: () => [END.completed],
  },
  {
    name: 'the attempt again after the end',
    rules: ['S2.7', 'S2.1'],
    drive: staleAttempt,
    allowed: () => [END.completed],
  },
  {
    name: 'frozen before the call, wakes later',
    rules: ['S2.11', 'S2.5'],
    unless: FROZEN_UNLESS,
    script: (scene) => ({ at: frozenIn(scene).inPlaceOfFirst('after_intent') }),
    drive: (scene) => frozenIn(scene).drive(),
    allowed: afterNothing,
  },
  {
    name: 'frozen during the call, lands later',
    rules: ['S2.11', 'S5.1'],
    unless: (terms) =>
      first(
        FROZEN_UNLESS(terms),
        terms.effect === 'unsafe' && 'nobody dedupes: the one case no client-side protocol closes (S2.11)',
      ),
    script: (scene) => ({
      at: frozenIn(scene).inPlaceOfFirst('within_execute'),
      execute: ({ turn, real }) =>
        // It had looked at its signal before it froze.
        turn > 1 ? real() : frozenIn(scene).freeze(() => real(new AbortController().signal)),
    }),
    drive: (scene) => frozenIn(scene).drive(),
    allowed: afterNothing,
  },
];

export const DELIVERIES: ScenarioGroup = { group: 'delivery', scenarios: deliveries };
