/** The same as scheduled-inputs.ts tells, read from a recorded history. */
import { upcastState } from '../../src/task/upcast.ts';
import type { Stored } from '../../src/task/upcast.ts';
import type { Asked } from './scheduled-inputs.ts';

interface Payloads {
  payloads?: { data?: string }[];
}
interface RecordedEvent {
  activityTaskScheduledEventAttributes?: { activityType: { name: string }; input: Payloads };
  workflowExecutionContinuedAsNewEventAttributes?: { input: Payloads };
  workflowExecutionCompletedEventAttributes?: { result: Payloads };
  workflowExecutionStartedEventAttributes?: { workflowId: string };
}
export interface RecordedHistory {
  events: RecordedEvent[];
}

/** What a task calls itself in its activities' arguments. */
export function workflowIdIn({ events }: RecordedHistory): string {
  return events[0]?.workflowExecutionStartedEventAttributes?.workflowId ?? '';
}

export function askedIn({ events }: RecordedHistory): Asked[] {
  return events.flatMap((event): Asked[] => {
    const activity = event.activityTaskScheduledEventAttributes;
    if (activity) return [[activity.activityType.name, valuesOf(activity.input)]];
    const continued = event.workflowExecutionContinuedAsNewEventAttributes;
    if (continued) return [['continueAsNew', valuesOf(continued.input)]];
    const completed = event.workflowExecutionCompletedEventAttributes;
    return completed ? [['result', valuesOf(completed.result)]] : [];
  });
}

const valuesOf = ({ payloads = [] }: Payloads): unknown[] =>
  payloads.map(({ data = '' }): unknown =>
    // Nothing was answered: the payload has no data.
    data === '' ? null : JSON.parse(Buffer.from(data, 'base64').toString('utf8')),
  );

/** Without what a later release may change: words for people, and the version of a state that is upcast on reading. */
export function comparable(asked: readonly Asked[]): Asked[] {
  const text = JSON.stringify(asked, (key, value: unknown) => (key === 'carried' ? upcastIn(value) : value));
  return JSON.parse(text, (_key, value: unknown) =>
    isError(value) ? { ...value, message: '' } : value,
  ) as Asked[];
}

const isError = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && 'code' in value && 'message' in value;

/** Of workflow `action`; a procedure's own state has been of one version. */
function upcastIn(carried: unknown): unknown {
  const { state } = carried as { state?: Stored };
  return state === undefined ? carried : { ...(carried as object), state: upcastState(state) };
}
