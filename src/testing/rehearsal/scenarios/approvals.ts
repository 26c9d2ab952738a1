/** What the people say whom policy asks, and when (S4): nothing begins before they said yes, nor after they said no. */
import type { ActionContract } from '../../../contract/define-action.ts';
import type { ApprovalView, DecisionAnswer, TaskAnswer } from '../../../client/task-client.ts';
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import { yesTo } from '../people.ts';
import { first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Scene } from '../scene.ts';
import type { Terms } from '../terms.ts';

const EXPIRES_IN_MS = 1_000;
/** Whoever is asked next must have the time to answer, on a busy machine too. */
const ESCALATED_MS = 5_000;
const WRONG_ANSWERS = 3;

const NOBODY = 'policy asks nobody about these arguments';

/** The same policy, with an end that can be waited for. */
export const expiringIn =
  (expiresInMs: number) =>
  (contract: ActionContract): ActionContract => {
    const rule: ActionContract['approval'] = (input) => {
      const own = contract.approval?.(input);
      // Where the contract's rule asks nobody, what can't be undone still asks (S6.4).
      const expiresIn =
        own && own.onExpiry === 'escalate' ? Math.max(expiresInMs, ESCALATED_MS) : expiresInMs;
      return { ...(own || {}), expiresIn };
    };
    return { ...contract, approval: rule };
  };
const soonExpired = expiringIn(EXPIRES_IN_MS);

/** S4.4: reminded or escalated, an approval stays open, and is given then. */
export function afterExpiry({ approval }: Terms): End[] {
  switch (approval?.onExpiry) {
    case 'halt':
      return [END.person];
    case 'remind':
    case 'escalate':
      return [END.completed];
    default:
      return [END.refused];
  }
}

/** `meanwhile`: while it waits. */
export async function letExpire(scene: Scene, meanwhile?: () => Promise<void>): Promise<TaskAnswer> {
  const asked = await scene.callUntilAsked();
  await meanwhile?.();
  const { onExpiry } = asked;
  if (onExpiry === 'remind' || onExpiry === 'escalate') {
    await scene.until(({ alerts }) => alerts.length > 0);
    await scene.approve(asked);
  } else {
    await scene.until(({ status }) => status !== 'awaiting_approval');
  }
  return scene.wait();
}

function expectRefused(scene: Scene, who: string, { accepted, code }: DecisionAnswer): void {
  scene.expect(!accepted, `${who} was accepted: ${code}`);
}

const rejectionOf = ({ callId }: ApprovalView) => ({ kind: 'reject', callId, reason: 'rehearsed' }) as const;

type Asked = Pick<Scenario, 'name' | 'rules' | 'allowed' | 'contract'> & {
  also?(terms: Terms): string | null | false;
  drive(scene: Scene): Promise<TaskAnswer>;
};

const whereAsked = ({ also, ...scenario }: Asked): Scenario => ({
  ...scenario,
  unless: (terms) => first(terms.approval === null && NOBODY, also?.(terms) ?? false),
});

const approvals: Scenario[] = [
  {
    name: 'approved',
    rules: ['S4.1', 'S4.5'],
    drive: async (scene: Scene) => {
      await scene.approve(await scene.callUntilAsked());
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
  {
    name: 'rejected',
    rules: ['S4.2'],
    drive: async (scene: Scene) => {
      await scene.decide(rejectionOf(await scene.callUntilAsked()));
      return scene.wait();
    },
    allowed: () => [END.refused],
  },
  {
    name: 'nobody decides in time',
    rules: ['S4.4'],
    contract: soonExpired,
    drive: (scene: Scene) => letExpire(scene),
    allowed: afterExpiry,
  },
  {
    name: 'approved after it expired',
    rules: ['S4.3', 'S4.4'],
    also: ({ approval }: Terms) =>
      approval?.onExpiry !== 'deny' && `an approval that expires is not over: ${approval?.onExpiry}`,
    contract: soonExpired,
    drive: async (scene: Scene) => {
      const asked = await scene.callUntilAsked();
      await scene.until(({ status }) => status !== 'awaiting_approval');
      expectRefused(scene, 'an approval after the expiry', await scene.decide(yesTo(asked)));
      return scene.wait();
    },
    allowed: () => [END.refused],
  },
  {
    name: 'cancelled while it waits for approval',
    rules: ['S7.4'],
    drive: async (scene: Scene) => {
      await scene.callUntilAsked();
      await scene.cancel();
      return scene.wait();
    },
    allowed: () => [END.cancelled],
  },
  {
    name: 'approved after the cancel',
    rules: ['S4.3', 'S7.4'],
    drive: async (scene: Scene) => {
      const asked = await scene.callUntilAsked();
      await scene.cancel();
      expectRefused(scene, 'an approval after the cancel', await scene.decide(yesTo(asked)));
      return scene.wait();
    },
    allowed: () => [END.cancelled],
  },
  {
    name: 'approved, then rejected',
    rules: ['S4.3'],
    drive: async (scene: Scene) => {
      const asked = await scene.callUntilAsked();
      await scene.approve(asked);
      expectRefused(scene, 'a rejection after the approval', await scene.decide(rejectionOf(asked)));
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
  {
    name: 'approved while interrupted, then resumed',
    rules: ['S7.2', 'S4.1'],
    drive: async (scene: Scene) => {
      const asked = await scene.callUntilAsked();
      await scene.interrupt();
      await scene.approve(asked);
      await scene.standsStill();
      await scene.resume();
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
  {
    name: 'approved by the requester',
    rules: ['S4.5'],
    also: ({ approval }: Terms) =>
      approval?.requesterMayDecide === true && 'policy lets the requester decide',
    drive: async (scene: Scene) => {
      const asked = await scene.callUntilAsked();
      expectRefused(scene, 'the requester', await scene.decide(yesTo(asked), 0));
      await scene.approve(asked);
      return scene.wait();
    },
    allowed: () => [END.completed],
  },
  {
    name: 'the phrase is wrong three times',
    rules: ['S4.6'],
    also: ({ approval }: Terms) => approval?.challenge === null && 'no phrase is asked for',
    drive: async (scene: Scene) => {
      const asked = await scene.callUntilAsked();
      for (let turn = 1; turn <= WRONG_ANSWERS; turn += 1) {
        const wrong = { ...yesTo(asked), challengeAnswer: `not ${asked.challenge}` };
        expectRefused(scene, 'a wrong phrase', await scene.decide(wrong));
      }
      return scene.wait();
    },
    allowed: () => [END.refused],
  },
].map(whereAsked);

export const APPROVALS: ScenarioGroup = { group: 'approval', scenarios: approvals };
