/** When a run continues as new (S3.6). */
import { workflowInfo } from '@temporalio/workflow';

/** Above either the run continues as new; far below the engine's limits of 51,200 events and 50 MB. */
const HISTORY_EVENTS_MAX = 4_000;
const HISTORY_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Where a run that can't continue as new begins nothing any more: what is under way can still end within the engine's
 * limits, and all of it be undone.
 */
const HISTORY_EVENTS_FULL = 40_000;
const HISTORY_BYTES_FULL = 36 * 1024 * 1024;

/** `reserveBytes`: what is still to be written before the run may end. */
export function isHistoryFull(reserveBytes: number): boolean {
  const { historyLength, historySize } = workflowInfo();
  return historyLength > HISTORY_EVENTS_FULL || historySize + reserveBytes > HISTORY_BYTES_FULL;
}

export function isHistoryLong(): boolean {
  const { historyLength, historySize, continueAsNewSuggested } = workflowInfo();
  return continueAsNewSuggested || historyLength > HISTORY_EVENTS_MAX || historySize > HISTORY_BYTES_MAX;
}
