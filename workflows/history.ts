/** When a run continues as new (S3.6). */
import { workflowInfo } from '@temporalio/workflow';

/** Above either the run continues as new; far below the engine's limits of 51,200 events and 50 MB. */
const HISTORY_EVENTS_MAX = 4_000;
const HISTORY_BYTES_MAX = 8 * 1024 * 1024;

export function isHistoryLong(): boolean {
  const { historyLength, historySize, continueAsNewSuggested } = workflowInfo();
  return continueAsNewSuggested || historyLength > HISTORY_EVENTS_MAX || historySize > HISTORY_BYTES_MAX;
}
