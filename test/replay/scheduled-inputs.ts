/**
 * What a workflow asks for, with which arguments: told by interceptors of workflow code while it replays, read from what
 * was recorded beside it. The engine itself compares types and order alone.
 */
import { proxySinks } from '@temporalio/workflow';
import type { Sinks, WorkflowInterceptors } from '@temporalio/workflow';

/** An activity by its type, `continueAsNew` or `result`, with what it was given. */
export type Asked = [what: string, given: unknown];

export interface AskedSinks extends Sinks {
  replay: { asked(what: string, given: string): void };
}

/** Found by this name in the bundle. What was given is told as text: the workflow may change it later. */
export function interceptors(): WorkflowInterceptors {
  const { replay } = proxySinks<AskedSinks>();
  const tell = (what: string, given: unknown): void => replay.asked(what, JSON.stringify(given ?? null));
  return {
    inbound: [
      {
        async execute(input, next) {
          const result = await next(input);
          tell('result', [result]);
          return result;
        },
      },
    ],
    outbound: [
      {
        scheduleActivity(input, next) {
          tell(input.activityType, input.args);
          return next(input);
        },
        continueAsNew(input, next) {
          tell('continueAsNew', input.args);
          return next(input);
        },
      },
    ],
  };
}
