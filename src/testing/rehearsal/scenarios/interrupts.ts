/** An interrupt that comes before, during and after the effect (S7.1–S7.3): what runs finishes, nothing else begins. */
import { setTimeout as sleep } from 'node:timers/promises';
import { ActionFailure, mismatch, notYet } from '../../../contract/handlers.ts';
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import { IN_ONE_TRANSACTION, first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Scene } from '../scene.ts';
import { crashOnceAt, onceAt } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import type { Terms } from '../terms.ts';
import { afterDone, withRetry } from './doubt.ts';
import { MIDWAY } from './points.ts';

const SOON_MS = 50;
/** Time enough to interrupt it meanwhile, on a busy machine too. */
const LATER_MS = 3_000;

/** Twice, as an impatient person would: the second changes nothing (S7.1). */
async function interruptTwice(scene: Scene): Promise<void> {
  await scene.interrupt();
  const again = await scene.interrupt();
  scene.expect(again.code === 'already_requested', `the second interrupt was answered ${again.code}`);
}

/** Nothing moves until somebody resumes it. */
async function heldThenResumed(scene: Scene) {
  await scene.start();
  await scene.standsStill();
  await scene.resume();
  return scene.wait();
}

const inOneTransaction = ({ transactional }: Terms): string | null =>
  transactional ? IN_ONE_TRANSACTION : null;
const noRetry = ({ retries }: Terms): string | null =>
  retries > 0 ? null : 'the contract allows no retry to hold back';

/**
 * The first call is put off by the target, and the task interrupted meanwhile: during the call, or after it where nothing
 * else can be asked of the ledger while the call's transaction is open.
 */
const interruptedBeforeRetry = (scene: Scene): Script => ({
  execute: async ({ turn, real }) => {
    if (turn > 1) return real();
    if (scene.props.terms.transactional) throw ActionFailure.rateLimited('rehearsed: later', LATER_MS);
    await interruptTwice(scene);
    throw ActionFailure.rateLimited('rehearsed: later', SOON_MS);
  },
});

async function heldBeforeRetry(scene: Scene): Promise<void> {
  await scene.start();
  if (scene.props.terms.transactional) {
    await scene.waitFor('backing_off');
    await interruptTwice(scene);
    await sleep(LATER_MS);
  }
  await scene.standsStill();
}

/** Read back wrongly, so that it is to be undone. */
const toBeUndone = (
  scene: Scene,
  then: (scene: Scene) => Promise<unknown>,
): NonNullable<Script['verify']> => {
  return async ({ real }) => {
    await real();
    await then(scene);
    return mismatch('rehearsed: not what was asked for');
  };
};

const undoable = ({ noRollback, noVerify, transactional }: Terms): string | null =>
  first(noRollback, noVerify, transactional && IN_ONE_TRANSACTION);

const completed = (): End[] => [END.completed];
const undone = (): End[] => [END.undone];

const interrupts: Scenario[] = [
  {
    name: 'interrupted before a retry',
    rules: ['S7.1', 'S7.2'],
    unless: noRetry,
    script: interruptedBeforeRetry,
    drive: async (scene) => {
      await heldBeforeRetry(scene);
      await scene.resume();
      return scene.wait();
    },
    allowed: completed,
  },
  {
    name: 'interrupted, then cancelled',
    rules: ['S7.2', 'S7.4'],
    unless: noRetry,
    script: interruptedBeforeRetry,
    drive: async (scene) => {
      await heldBeforeRetry(scene);
      await scene.cancel();
      return scene.wait();
    },
    allowed: () => [END.cancelled],
  },
  {
    name: 'interrupted, and crash before the claim',
    rules: ['S7.2', 'S2.11'],
    unless: inOneTransaction,
    script: (scene) => ({
      at: crashOnceAt('effect', 'before_claim', async () => void (await scene.interrupt())),
    }),
    drive: heldThenResumed,
    allowed: completed,
  },
  ...MIDWAY.map(({ point, where }): Scenario => ({
    name: `interrupted ${where}`,
    rules: ['S7.2', 'S7.3'],
    unless: inOneTransaction,
    script: (scene) => ({ at: onceAt('effect', point, async () => void (await scene.interrupt())) }),
    allowed: completed,
  })),
  {
    name: 'interrupted during the call',
    rules: ['S7.2', 'S7.3'],
    unless: inOneTransaction,
    script: (scene) => ({
      execute: async ({ turn, real }) => {
        if (turn > 1) return real();
        const [answer] = await Promise.all([real(), scene.interrupt()]);
        return answer;
      },
    }),
    allowed: completed,
  },
  {
    name: 'interrupted during the call, answer lost',
    rules: ['S7.3', 'S2.4'],
    unless: inOneTransaction,
    script: (scene) => ({
      execute: async ({ turn, real }) => {
        const answer = await real();
        if (turn > 1) return answer;
        await scene.interrupt();
        throw new Error('rehearsed: the connection was reset');
      },
    }),
    drive: heldThenResumed,
    allowed: (terms) => withRetry(terms, afterDone(terms)),
  },
  {
    name: 'interrupted while it is not to be seen yet',
    rules: ['S7.2', 'S2.6'],
    unless: ({ noVerify, transactional }) => first(noVerify, transactional && IN_ONE_TRANSACTION),
    script: (scene) => ({
      verify: async ({ turn, real }) => {
        if (turn > 1) return real();
        await scene.interrupt();
        return notYet('rehearsed');
      },
    }),
    allowed: completed,
  },
  {
    name: 'interrupted before it is rolled back',
    rules: ['S7.2', 'S6.2'],
    unless: undoable,
    script: (scene) => ({ verify: toBeUndone(scene, () => scene.interrupt()) }),
    drive: heldThenResumed,
    allowed: undone,
  },
  {
    name: 'interrupted while it is rolled back',
    rules: ['S7.2', 'S6.2'],
    unless: undoable,
    script: (scene) => ({
      verify: toBeUndone(scene, () => Promise.resolve()),
      rollback: async ({ turn, real }) => {
        if (turn === 1) await scene.interrupt();
        return real();
      },
    }),
    allowed: undone,
  },
  {
    name: 'interrupted after the end',
    rules: ['S7.1'],
    drive: async (scene) => {
      await scene.start();
      await scene.wait();
      const reply = await scene.interrupt();
      scene.expect(reply.code === 'already_ended', `the late interrupt was answered ${reply.code}`);
      return scene.wait();
    },
    allowed: completed,
  },
];

export const INTERRUPTS: ScenarioGroup = { group: 'interrupt', scenarios: interrupts };
