/** One scenario of a procedure: what is done to which of its steps, and how it may end. Data, no I/O. */
import type { TaskAnswer } from '../../../client/task-client.ts';
import type { ApprovalView } from '../../../client/task-client.ts';
import type { End } from '../endings.ts';
import type { Script } from '../scripts.ts';
import type { Terms } from '../terms.ts';
import type { CourseStep } from './course.ts';
import type { ProcedureScene } from './procedure-scene.ts';

/** A step of the clean run, with what its action promises. */
export interface KnownStep extends CourseStep {
  terms: Terms;
}

/** Whom the clean run asked, and about which step; a gate is a step of its own (`p.approve`). */
export interface AskedStep extends CourseStep {
  isGate: boolean;
  onExpiry: ApprovalView['onExpiry'];
}

export interface ProcedureScenario {
  group: string;
  name: string;
  rules: readonly string[];
  /** What is done to steps, by their names. */
  scripts(scene: ProcedureScene): Record<string, Script>;
  /** Played where runs continue as new after a few dozen events (S3.6). */
  shortHistory?: boolean;
  /** Default: start, and wait until the task has ended or needs a person. */
  drive?(scene: ProcedureScene): Promise<TaskAnswer>;
  allowed: readonly End[];
}
