/** The attempt dies at each point of the protocol; the next one finds out what the dead one did (S2.11). */
import type { FaultPoint } from '../../../operation/faults.ts';
import { END } from '../endings.ts';
import type { End } from '../endings.ts';
import { crashOnceAt } from '../scripts.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Terms } from '../terms.ts';
import { afterDone, afterNothing } from './doubt.ts';
import { POINTS } from './points.ts';
import type { Point } from './points.ts';

const ALLOWED: Record<FaultPoint, (terms: Terms) => End[]> = {
  before_claim: () => [END.completed],
  after_intent: afterNothing,
  after_effect: afterDone,
  after_verify: afterDone,
  after_commit: () => [END.completed],
};

const crashed = ({ point, where }: Point): Scenario => ({
  name: `crash ${where}`,
  rules: ['S2.11'],
  script: () => ({ at: crashOnceAt('effect', point) }),
  allowed: ALLOWED[point],
});

/** The second attempt dies where the first did: what was found out once must be found out again. */
const crashedTwice: Scenario = {
  name: 'two crashes after the call',
  rules: ['S2.11', 'S2.4'],
  script: () => {
    const crashes = [crashOnceAt('effect', 'after_effect'), crashOnceAt('effect', 'after_verify')];
    return {
      at: async (place) => {
        for (const crash of crashes) await crash(place);
      },
    };
  },
  allowed: afterDone,
};

export const CRASHES: ScenarioGroup = {
  group: 'crash',
  scenarios: [...POINTS.map(crashed), crashedTwice],
};
