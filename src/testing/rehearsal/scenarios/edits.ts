/**
 * An approver changes the arguments (S4.2): what takes effect is what was edited and nothing else, once, and never more
 * than policy lets one approver decide.
 */
import { canonicalText } from '../../../contract/canonical.ts';
import type { TaskAnswer } from '../../../client/task-client.ts';
import { END } from '../endings.ts';
import { yesTo } from '../people.ts';
import { first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Scene } from '../scene.ts';
import type { Script } from '../scripts.ts';
import type { Terms } from '../terms.ts';
import { afterDone, withRetry } from './doubt.ts';

const NOT_GIVEN = 'the rehearsal does not say what an approver might edit the arguments to (`edited`)';
const ASKED_NO_MORE = 'policy leaves the edited arguments to whoever made the edit';

type Edit = Pick<Scenario, 'name' | 'rules' | 'allowed' | 'script' | 'executes'> & {
  also?(terms: Terms): string | null | false;
  drive(scene: Scene): Promise<TaskAnswer>;
};

const whereEdited = ({ also, ...scenario }: Edit): Scenario => ({
  ...scenario,
  unless: (terms) =>
    first(
      terms.approval === null && 'policy asks nobody about these arguments',
      terms.edited === null && NOT_GIVEN,
      also?.(terms) ?? false,
    ),
});

/** Edited, and approved again by everybody whom policy asks about the new arguments. */
async function editedAndApproved(scene: Scene): Promise<TaskAnswer> {
  await scene.edit((again) => scene.approve(again));
  const answer = await scene.wait();
  const { edited } = scene.props;
  const { executed } = scene.part;
  if (edited !== null && executed !== undefined)
    scene.expect(
      canonicalText(executed) === canonicalText(scene.planned(edited).input),
      'execute was given other arguments than the edited ones',
    );
  return answer;
}

/** The same arguments but one, of a kind that the contract does not take; null where it takes everything. */
function misfit(scene: Scene) {
  const { args } = scene.props;
  const odd = ['rehearsed', -1, true, null, { rehearsed: true }];
  const variants = Object.keys(args).flatMap((name) => odd.map((value) => ({ ...args, [name]: value })));
  return variants.find((each) => !fits(scene, each)) ?? null;
}

function fits(scene: Scene, args: ReturnType<typeof Object.assign>): boolean {
  try {
    scene.planned(args);
    return true;
  } catch {
    return false;
  }
}

const edits: Scenario[] = [
  {
    name: 'edited by an approver',
    rules: ['S4.2'],
    executes: 'edited' as const,
    drive: editedAndApproved,
    allowed: () => [END.completed],
  },
  {
    name: 'edited, then approved as it was',
    rules: ['S4.2', 'S4.3'],
    executes: 'edited' as const,
    drive: async (scene: Scene) => {
      const asked = await scene.edit((again) => scene.approve(again));
      const { accepted, code } = await scene.decide(yesTo(asked), 1);
      scene.expect(!accepted, `an approval of what was edited was accepted: ${code}`);
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
  {
    name: 'edited, then called again as it was',
    rules: ['S4.2', 'S1.5'],
    executes: 'edited' as const,
    drive: async (scene: Scene) => {
      const answer = await editedAndApproved(scene);
      const again = await scene.call(scene.props.otherClient);
      scene.expect(again.taskId === answer.taskId, 'the repeated call met another task');
      scene.expect(again.editedFrom !== undefined, 'the repeated call was not told of the edit');
      return answer;
    },
    allowed: () => [END.completed],
  },
  {
    name: 'edited, then its answer lost once',
    rules: ['S4.2', 'S2.4'],
    executes: 'edited' as const,
    script: (): Script => ({
      execute: async ({ turn, real }) => {
        const answer = await real();
        if (turn > 1) return answer;
        throw new Error('rehearsed: the connection was reset');
      },
    }),
    also: ({ transactional }: Terms) => transactional && 'its effect and its commit are one transaction',
    drive: editedAndApproved,
    allowed: (terms: Terms) => withRetry(terms, afterDone(terms)),
  },
  {
    name: 'edited, and the edit rejected',
    rules: ['S4.2'],
    executes: 'edited' as const,
    also: ({ edited }: Terms) => edited?.asksAgain !== true && ASKED_NO_MORE,
    drive: async (scene: Scene) => {
      await scene.edit(({ callId }) => scene.decide({ kind: 'reject', callId, reason: 'rehearsed' }, 1));
      return scene.wait();
    },
    allowed: () => [END.refused],
  },
  {
    name: 'edited to what the contract does not take',
    rules: ['S4.2'],
    drive: async (scene: Scene) => {
      const asked = await scene.callUntilAsked();
      const wrong = misfit(scene);
      if (wrong !== null) {
        const { code } = await scene.decide({ kind: 'edit', callId: asked.callId, arguments: wrong });
        scene.expect(code === 'invalid_edit', `an edit that does not fit the contract was answered ${code}`);
      }
      await scene.approve(asked);
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
].map(whereEdited);

export const EDITS: ScenarioGroup = { group: 'edit', scenarios: edits };
