/** A cancel that comes before, during and after the effect (S7.4): it never ends in `cancelled` over a standing effect. */
import { ActionFailure, mismatch, notYet } from '../../../contract/handlers.ts';
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import { IN_ONE_TRANSACTION, first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import { crashOnceAt, onceAt } from '../scripts.ts';
import type { Terms } from '../terms.ts';
import { MIDWAY } from './points.ts';

const LONG_MS = 3_600_000;

/** What the contract says of a cancel that meets the effect. */
const met = ({ onCancel }: Terms): End => (onCancel === 'rollback' ? END.cancelledAndUndone : END.completed);

/** An abort may cut the call off before the target acted; whether it did must then be found out. */
function duringCall(terms: Terms): End[] {
  if (terms.cancelAttempt === 'finish') return [met(terms)];
  const unknown = terms.effect === 'safe' || terms.lookup === 'conclusive' ? [] : [END.person];
  return [met(terms), END.cancelled, ...unknown];
}

/** Its answer lost as well: settled by the look-up alone, since nothing is sent after a cancel. */
function duringLostCall(terms: Terms): End[] {
  if (terms.effect === 'safe') return [END.cancelled];
  return [terms.lookup === 'none' ? END.person : met(terms)];
}

const cancels: Scenario[] = [
  {
    name: 'cancelled while it waits to retry',
    rules: ['S7.4'],
    unless: ({ retries }) => (retries > 0 ? null : 'the contract allows no retry to wait for'),
    script: () => ({
      execute: ({ turn, real }) =>
        turn === 1 ? Promise.reject(ActionFailure.rateLimited('rehearsed: later', LONG_MS)) : real(),
    }),
    drive: async (scene) => {
      await scene.start();
      await scene.waitFor('backing_off');
      await scene.cancel();
      return scene.wait();
    },
    allowed: () => [END.cancelled],
  },
  {
    name: 'cancelled, and crash before the claim',
    rules: ['S7.4', 'S2.11'],
    unless: ({ transactional }) => (transactional ? IN_ONE_TRANSACTION : null),
    script: (scene) => ({
      at: crashOnceAt('effect', 'before_claim', async () => void (await scene.cancel())),
    }),
    allowed: () => [END.cancelled],
  },
  ...MIDWAY.map(({ point, where }): Scenario => ({
    name: `cancelled ${where}`,
    rules: ['S7.4'],
    unless: ({ transactional }) => (transactional ? IN_ONE_TRANSACTION : null),
    script: (scene) => ({ at: onceAt('effect', point, async () => void (await scene.cancel())) }),
    allowed: duringCall,
  })),
  {
    name: 'cancelled during the call',
    rules: ['S7.4'],
    unless: ({ transactional }) => (transactional ? IN_ONE_TRANSACTION : null),
    script: (scene) => ({
      execute: async ({ turn, real }) => {
        if (turn > 1) return real();
        const [answer] = await Promise.all([real(), scene.cancel()]);
        return answer;
      },
    }),
    allowed: duringCall,
  },
  {
    name: 'cancelled during the call, answer lost',
    rules: ['S7.4', 'S3.8'],
    unless: ({ transactional }) => (transactional ? IN_ONE_TRANSACTION : null),
    script: (scene) => ({
      execute: async ({ turn, real }) => {
        const answer = await real();
        if (turn > 1) return answer;
        await scene.cancel();
        throw new Error('rehearsed: the connection was reset');
      },
    }),
    allowed: duringLostCall,
  },
  {
    name: 'cancelled while it is not to be seen yet',
    rules: ['S7.4', 'S2.6'],
    unless: ({ noVerify, transactional }) => first(noVerify, transactional && IN_ONE_TRANSACTION),
    script: (scene) => ({
      verify: async ({ turn, real }) => {
        if (turn > 1) return real();
        await scene.cancel();
        return notYet('rehearsed');
      },
    }),
    allowed: duringCall,
  },
  {
    name: 'cancelled after the commit',
    rules: ['S7.4'],
    script: (scene) => ({
      at: onceAt('effect', 'after_commit', async () => void (await scene.cancel())),
    }),
    allowed: (terms) => [met(terms)],
  },
  {
    name: 'cancelled after the end',
    rules: ['S7.4'],
    drive: async (scene) => {
      await scene.start();
      await scene.wait();
      const reply = await scene.cancel();
      scene.expect(reply.code === 'already_ended', `the late cancel was answered ${reply.code}`);
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
  {
    name: 'cancelled while it is rolled back',
    rules: ['S7.4', 'S6.2'],
    unless: ({ noRollback, noVerify, transactional }) =>
      first(noRollback, noVerify, transactional && IN_ONE_TRANSACTION),
    script: (scene) => ({
      verify: async ({ real }) => {
        await real();
        return mismatch('rehearsed: not what was asked for');
      },
      rollback: async ({ turn, real }) => {
        if (turn === 1) await scene.cancel();
        return real();
      },
    }),
    allowed: () => [END.undone],
  },
];

export const CANCELS: ScenarioGroup = { group: 'cancel', scenarios: cancels };
