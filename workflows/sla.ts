/**
 * The business SLA of a task, or of a step of a procedure (S5.3): a durable timer beside whatever the task is doing, which alerts once and ends
 * nothing. A task that promised none has neither the timer nor an event of it in its history.
 */
import { condition } from '@temporalio/workflow';
import { slaDueAt } from '../src/task/decide.ts';
import { isOver } from '../src/task/phase.ts';
import type { TaskState } from '../src/task/state.ts';
import type { Journal } from './journal.ts';
import type { TaskRun } from './task-run.ts';

/** A bare task's plan, and with it its SLA, is not known yet. */
export function mayMissSla(state: TaskState): boolean {
  return state.plan === null || slaDueAt(state) !== null;
}

export async function watchSla(journal: Journal, run: TaskRun): Promise<void> {
  const isSettled = (): boolean => isOver(journal.state);
  await condition(() => journal.state.plan !== null || isSettled());
  const dueAt = slaDueAt(journal.state);
  if (dueAt === null) return;
  if (await condition(isSettled, Math.max(1, dueAt - Date.now()))) return;
  journal.append({ type: 'sla_missed', data: {} });
  await run.alertMeanwhile();
}
