/** What a call leaves in the engine: history events, activities, and what Temporal Cloud would bill. Counted, not timed. */
import { randomUUID } from 'node:crypto';
import { figure } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { BARE_QUEUE } from '../system.ts';
import type { System } from '../system.ts';

interface Counted {
  events: number;
  activities: number;
  billed: number;
}

export async function historyFigures({ holdfast, principal }: System): Promise<Figure[]> {
  const { client, temporal } = holdfast;
  const booking = { sku: 'widget', quantity: 3 };
  const counted = async (workflowId: string): Promise<Counted> => {
    const handle = temporal.workflow.getHandle(workflowId);
    await handle.result();
    const { events } = await handle.fetchHistory();
    return countOf(events ?? []);
  };
  const durable = async (action: string): Promise<Counted> =>
    counted((await client.start({ action, args: { ...booking }, key: randomUUID(), principal })).taskId);
  const bare = async (): Promise<Counted> => {
    const workflowId = randomUUID();
    await temporal.workflow.start('bareActivity', {
      workflowId,
      taskQueue: BARE_QUEUE,
      args: [workflowId, booking],
    });
    return counted(workflowId);
  };
  const [inline, dispatched, leased, baseline] = [
    await durable('book_inline'),
    await durable('book_dispatched'),
    await durable('book_leased'),
    await bare(),
  ];
  return [
    figure('inline call, activities', inline.activities, 'activities', { exactly: 0 }),
    figure('inline call, history', inline.events, 'events'),
    figure('inline call, billed', inline.billed, 'actions'),
    figure('dispatched call, activities', dispatched.activities, 'activities', { exactly: 1 }),
    figure('dispatched call, history', dispatched.events, 'events'),
    figure('dispatched call, billed', dispatched.billed, 'actions'),
    figure('leased call, activities', leased.activities, 'activities', { exactly: 2 }),
    figure('leased call, history', leased.events, 'events'),
    figure('bare workflow, history', baseline.events, 'events'),
    figure('bare workflow, billed', baseline.billed, 'actions'),
  ];
}

type Event = { [Name in Attribute]?: unknown };
type Attribute =
  | 'activityTaskScheduledEventAttributes'
  | 'markerRecordedEventAttributes'
  | 'upsertWorkflowSearchAttributesEventAttributes'
  | 'timerStartedEventAttributes';

/** One action each: the start, an activity, a timer, an upsert; and one for all local activities of a workflow task. */
function countOf(events: readonly Event[]): Counted {
  const count = (name: Attribute): number => events.filter((event) => event[name] != null).length;
  const activities = count('activityTaskScheduledEventAttributes');
  const local = Math.min(1, count('markerRecordedEventAttributes'));
  const others =
    count('timerStartedEventAttributes') + count('upsertWorkflowSearchAttributesEventAttributes');
  return { events: events.length, activities, billed: 1 + activities + local + others };
}
