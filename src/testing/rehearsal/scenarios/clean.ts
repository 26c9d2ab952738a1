/** Nothing goes wrong: the proof that action, arguments and count fit together. All other scenarios depend on it. */
import { END } from '../endings.ts';
import type { ScenarioGroup } from '../scenario.ts';

export const CLEAN: ScenarioGroup = {
  group: 'clean',
  scenarios: [{ name: 'nothing goes wrong', rules: ['S2'], allowed: () => [END.completed] }],
};
