/** Nothing goes wrong: the proof that action, arguments and count fit together. All other scenarios depend on it. */
import { END } from '../endings.ts';
import type { Scenario } from '../scenario.ts';

const clean: Scenario = { name: 'nothing goes wrong', rules: ['S2'], allowed: () => [END.completed] };

export const CLEAN = { group: 'clean', scenario: clean };
