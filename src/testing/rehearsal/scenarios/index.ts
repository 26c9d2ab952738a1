/** Every scenario of an action's rehearsal, in the order of the report. */
import type { ScenarioGroup } from '../scenario.ts';
import { APPROVALS } from './approvals.ts';
import { CANCELS } from './cancels.ts';
import { CONTINUED } from './continued.ts';
import { CRASHES } from './crashes.ts';
import { DELIVERIES } from './deliveries.ts';
import { EDITS } from './edits.ts';
import { FAILURES } from './failures.ts';
import { INTERRUPTS } from './interrupts.ts';
import { ROLLBACKS } from './rollbacks.ts';
import { VERIFICATION } from './verification.ts';

export { CLEAN } from './clean.ts';

export const SCENARIOS: readonly ScenarioGroup[] = [
  CRASHES,
  FAILURES,
  VERIFICATION,
  ROLLBACKS,
  APPROVALS,
  EDITS,
  CANCELS,
  INTERRUPTS,
  DELIVERIES,
  CONTINUED,
];
