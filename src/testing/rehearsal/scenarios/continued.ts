/** A run that continues as new while its task waits (S3.6): what was asked, answered and due before goes on after it. */
import { ActionFailure } from '../../../contract/handlers.ts';
import { END } from '../endings.ts';
import { yesTo } from '../people.ts';
import { first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Terms } from '../terms.ts';
import { afterExpiry, expiringIn, letExpire } from './approvals.ts';

/** Time enough to continue as new meanwhile, on a busy machine too. */
const LATER_MS = 12_000;

const nobody = ({ approval }: Terms): string | null =>
  approval === null ? 'policy asks nobody about these arguments' : null;

const continued: Scenario[] = [
  {
    name: 'continued as new while it waits for approval',
    rules: ['S3.6', 'S4.1', 'S4.3'],
    unless: nobody,
    drive: async (scene) => {
      const asked = await scene.callUntilAsked();
      const answered = { ...yesTo(asked), decisionId: 'rehearsed', fingerprint: 'of another call' };
      const before = await scene.decide(answered);
      scene.expect(!before.accepted, 'an approval of another call was accepted');
      await scene.continuedAsNew();
      const again = await scene.decide({ ...answered, fingerprint: asked.fingerprint });
      scene.expect(
        again.code === before.code,
        `the same decision was first ${before.code}, then ${again.code}`,
      );
      await scene.approve(asked);
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
  {
    name: 'continued as new, and nobody decides in time',
    rules: ['S3.6', 'S4.4'],
    unless: nobody,
    contract: expiringIn(LATER_MS),
    drive: (scene) => letExpire(scene, () => scene.continuedAsNew()),
    allowed: afterExpiry,
  },
  {
    name: 'continued as new while it waits to retry',
    rules: ['S3.6', 'S5.2'],
    unless: ({ retries }) => first(retries === 0 && 'the contract allows no retry to wait for'),
    script: () => ({
      execute: ({ turn, real }) =>
        turn > 1 ? real() : Promise.reject(ActionFailure.rateLimited('rehearsed: later', LATER_MS)),
    }),
    drive: async (scene) => {
      await scene.start();
      await scene.waitFor('backing_off');
      await scene.continuedAsNew();
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
];

export const CONTINUED: ScenarioGroup = {
  group: 'continued',
  scenarios: continued.map((scenario) => ({ ...scenario, shortHistory: true })),
};
