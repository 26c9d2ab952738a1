/** Cancel and interrupt at each phase of a step (S6.6): its call, its verification, before a retry, and while it is undone. Pure. */
import { ActionFailure } from '../../../contract/handlers.ts';
import { END } from '../endings.ts';
import { onceAt } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import type { KnownStep, ProcedureScenario } from './procedure-scenario.ts';
import type { ProcedureScene } from './procedure-scene.ts';
import { before, cancelledAfter, failedAfter, refused } from './step-ends.ts';

type Happens = () => Promise<unknown>;

/** It happens beside the step's first call. */
const duringFirst = (happens: Happens): Script => ({
  execute: async ({ turn, real }) => {
    if (turn > 1) return real();
    const [answer] = await Promise.all([real(), happens()]);
    return answer;
  },
});

const whileVerified = (happens: Happens): Script => ({
  verify: async ({ turn, real }) => {
    if (turn === 1) await happens();
    return real();
  },
});

/** The first call comes to nothing; `again`: before the next. */
const beforeRetry = (happens: Happens, again: () => void = () => undefined): Script => ({
  execute: async ({ turn, real }) => {
    if (turn > 1) {
      again();
      return real();
    }
    await happens();
    throw new ActionFailure({ kind: 'notApplied', code: 'not_now', message: 'rehearsed: not just now' });
  },
});

const afterCommit = (happens: Happens): Script => ({
  at: onceAt('effect', 'after_commit', async () => void (await happens())),
});

export function cancels(own: KnownStep, standing: KnownStep[]): ProcedureScenario[] {
  const { step, terms } = own;
  const reached = cancelledAfter([...standing, own]);
  const scenario = (
    when: string,
    script: (happens: Happens) => Script,
    allowed: ProcedureScenario['allowed'],
  ): ProcedureScenario => ({
    group: 'cancel',
    name: `${step}: cancelled ${when}`,
    rules: ['S6.3', 'S7.4'],
    scripts: ({ scene }) => ({ [step]: script(() => scene.cancel()) }),
    allowed,
  });
  const after = scenario('after the commit', afterCommit, reached);
  // Nothing else can be asked of the ledger while the transaction is open.
  if (terms.transactional) return [after];
  const orNot = [...reached, ...cancelledAfter(standing), END.person];
  const underWay = terms.cancelAttempt === 'finish' ? reached : orNot;
  return [
    scenario('during the call', duringFirst, underWay),
    ...(terms.noVerify === null ? [scenario('while it is verified', whileVerified, underWay)] : []),
    ...(terms.retries > 0
      ? [
          scenario(
            'before its retry',
            beforeRetry,
            terms.cancelAttempt === 'finish' ? cancelledAfter(standing) : orNot,
          ),
        ]
      : []),
    after,
  ];
}

export function interrupts(own: KnownStep, steps: readonly KnownStep[]): ProcedureScenario[] {
  const { step, terms } = own;
  const later = steps.filter(({ after }) => after.includes(step));
  const scenario = (
    when: string,
    script: (scene: ProcedureScene, happens: Happens) => Script,
  ): ProcedureScenario => ({
    group: 'interrupt',
    name: `${step}: interrupted ${when}`,
    rules: ['S6.3', 'S7.2'],
    scripts: (scene) => ({ [step]: script(scene, () => scene.scene.interrupt()) }),
    drive: async (scene) => {
      await scene.call();
      await scene.holdsBack(later);
      return scene.resumed();
    },
    allowed: [END.completed],
  });
  if (terms.transactional) return [scenario('after the commit', (_scene, happens) => afterCommit(happens))];
  return [
    scenario('during the call', (_scene, happens) => duringFirst(happens)),
    ...(terms.noVerify === null
      ? [scenario('while it is verified', (_scene, happens) => whileVerified(happens))]
      : []),
    ...(terms.retries > 0
      ? [
          scenario('before its retry', (scene, happens) =>
            beforeRetry(happens, () =>
              scene.scene.expect(scene.isResumed, `step ${step} was tried again while it was interrupted`),
            ),
          ),
        ]
      : []),
  ];
}

/** Everything before the last effect is undone, since that is refused; and meanwhile it is cancelled, or interrupted. */
export function stopsWhileUndone(steps: readonly KnownStep[]): ProcedureScenario[] {
  const last = steps.at(-1);
  if (last === undefined) return [];
  const standing = before(last, steps);
  const ends = failedAfter(standing);
  return standing
    .filter(({ terms }) => terms.effect !== 'safe' && terms.noRollback === null)
    .flatMap(({ step, terms: { transactional } }): ProcedureScenario[] => {
      const point = transactional ? 'after_commit' : 'after_effect';
      const whileUndone = (happens: Happens): Record<string, Script> => ({
        [last.step]: refused,
        [step]: { at: onceAt('rollback', point, async () => void (await happens())) },
      });
      return [
        {
          group: 'cancel',
          name: `${step}: cancelled while it is undone`,
          rules: ['S6.3', 'S7.4'],
          scripts: ({ scene }) => whileUndone(() => scene.cancel()),
          allowed: [...ends, ...cancelledAfter(standing)],
        },
        {
          group: 'interrupt',
          name: `${step}: interrupted while it is undone`,
          rules: ['S6.3', 'S7.2'],
          scripts: (scene) =>
            whileUndone(async () => {
              await scene.scene.interrupt();
              scene.undoneBefore = [...scene.undone];
            }),
          drive: async (scene) => {
            await scene.call();
            await scene.holdsBackUndoing();
            return scene.resumed();
          },
          allowed: ends,
        },
      ];
    });
}
