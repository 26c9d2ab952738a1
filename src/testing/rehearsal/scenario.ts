/** One scenario: what is done to an operation, and how it may end if all promises are kept. Data, no I/O. */
import type { ActionContract } from '../../contract/define-action.ts';
import type { TaskAnswer } from '../../client/task-client.ts';
import type { End } from './endings.ts';
import type { CleanRun } from './forge.ts';
import type { Scene } from './scene.ts';
import type { Script } from './scripts.ts';
import type { Terms } from './terms.ts';

export interface Scenario {
  /** In words; the table's first column. */
  name: string;
  rules: readonly string[];
  /** Why it makes no sense for this action; null when it does. `clean`: what the clean run answered, once it has. */
  unless?(terms: Terms, clean?: CleanRun & { output: ActionContract['output'] }): string | null;
  /** The contract of this operation alone. */
  contract?(contract: ActionContract): ActionContract;
  script?(scene: Scene): Script;
  /** Default: start, and wait until the task has ended or needs a person. */
  drive?(scene: Scene): Promise<TaskAnswer>;
  /** Played where runs continue as new after a few dozen events. */
  shortHistory?: boolean;
  /** The arguments that are to take effect; default: those it is called with. */
  executes?: 'edited';
  allowed(terms: Terms): readonly End[];
}

export interface ScenarioGroup {
  group: string;
  scenarios: readonly Scenario[];
}

/** Every reason that holds; null when none does. */
export function first(...reasons: (string | null | false)[]): string | null {
  return reasons.find((reason): reason is string => typeof reason === 'string') ?? null;
}

export const IN_ONE_TRANSACTION = 'its effect and its commit are one transaction';
