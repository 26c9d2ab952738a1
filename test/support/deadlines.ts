/** What a client gives the engine at most, call by call: asserted instead of the time an answer took on a busy machine. */
import { Client } from '@temporalio/client';
import { onTestFinished, vi } from 'vitest';

/** Answers the longest deadline given from now on, in milliseconds; 0 while none was. */
export function watchDeadlines(): () => number {
  let longestMs = 0;
  const { withDeadline } = Client.prototype;
  const spy = vi.spyOn(Client.prototype, 'withDeadline').mockImplementation(function (
    this: Client,
    deadline,
    call,
  ) {
    longestMs = Math.max(longestMs, Number(deadline) - Date.now());
    return withDeadline.bind(this)(deadline, call);
  });
  onTestFinished(() => spy.mockRestore());
  return () => longestMs;
}
