/** The effect is read back, and is not what was promised, not to be seen yet, or not there at all (S2.2, S2.6). */
import { fails, mismatch, notYet } from '../../../contract/handlers.ts';
import type { ActionContract } from '../../../contract/define-action.ts';
import { forgedResult } from '../forge.ts';
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import { first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Scene } from '../scene.ts';
import type { Terms } from '../terms.ts';

const VERIFY_MS_MAX = 1_500;

function impatient(contract: ActionContract): ActionContract {
  const verifyMs = Math.min(contract.deadlines.verifyMs, VERIFY_MS_MAX);
  return { ...contract, deadlines: { ...contract.deadlines, verifyMs } };
}

/** What was applied is rolled back for real; what can't be is a person's. */
function afterMismatch({ transactional, effect, noRollback }: Terms): End[] {
  if (transactional || effect === 'safe') return [END.refused];
  return [noRollback === null ? END.undone : END.person];
}

/** A result as a lying target would answer it. */
function forgedIn({ props }: Scene) {
  const { clean, args, action } = props;
  return clean === undefined ? null : forgedResult(clean, args, action.contract.output);
}

const verification: Scenario[] = [
  {
    name: 'not as promised when read back',
    rules: ['S2.6', 'S6'],
    unless: ({ noVerify }) => noVerify,
    script: () => ({
      verify: async ({ real }) => {
        await real();
        return mismatch('rehearsed: not what was asked for');
      },
    }),
    allowed: afterMismatch,
  },
  {
    name: 'not to be seen at first',
    rules: ['S2.6'],
    unless: ({ noVerify }) => noVerify,
    script: () => ({
      verify: ({ turn, real }) => (turn === 1 ? Promise.resolve(notYet('rehearsed')) : real()),
    }),
    allowed: ({ transactional, retries }) =>
      transactional && retries === 0 ? [END.refused] : [END.completed],
  },
  {
    name: 'never to be seen',
    rules: ['S2.6', 'S3.5'],
    unless: ({ noVerify }) => noVerify,
    contract: impatient,
    script: () => ({ verify: () => Promise.resolve(notYet('rehearsed')) }),
    allowed: ({ transactional }) => (transactional ? [END.refused] : [END.person]),
  },
  {
    name: 'answered, and nothing was done',
    rules: ['S2.6'],
    unless: ({ noVerify, effect }, clean) =>
      first(
        noVerify,
        effect === 'safe' && 'a safe action does nothing anyway',
        clean !== undefined &&
          forgedResult(clean, clean.args, clean.output) === null &&
          'the result holds nothing of the target’s own that a lie could get wrong',
      ),
    contract: impatient,
    script: (scene) => ({ execute: () => Promise.resolve(forgedIn(scene)) }),
    allowed: ({ transactional }) => (transactional ? [END.refused] : [END.refused, END.undone, END.person]),
  },
  {
    name: 'the precondition does not hold',
    rules: ['S2.2'],
    unless: ({ hasPrecondition }) => (hasPrecondition ? null : 'there is no precondition'),
    script: () => ({
      precondition: async ({ real }) => {
        await real();
        return fails('rehearsed: it does not hold');
      },
    }),
    drive: async (scene) => {
      await scene.start();
      const answer = await scene.wait();
      scene.expect(scene.part.calls.execute === undefined, 'execute was called all the same');
      return answer;
    },
    allowed: () => [END.refused],
  },
];

export const VERIFICATION: ScenarioGroup = { group: 'verify', scenarios: verification };
