/** A call as the gateway has it once the SDK has read it: its caller, and what it is served with. */
import type { CallParts } from '../../src/gateway/call-tool.ts';
import type { Caller } from '../../src/gateway/caller.ts';
import { DEFAULT_LIMITS } from '../../src/gateway/limits.ts';
import { silentLog } from '../../src/gateway/log.ts';
import { LOCAL } from './driven-gateway.ts';
import { HandDrivenClock } from './hand-driven-clock.ts';

/** Without the Tasks extension, forms or a progress token, over a transport whose abort is a cancel. */
export const callerWith = (change: Partial<Caller> = {}): Caller => ({
  principal: LOCAL,
  declaresTasks: false,
  canElicit: false,
  requestState: undefined,
  inputResponses: undefined,
  abortMeansCancel: () => true,
  signal: new AbortController().signal,
  meta: {},
  progressToken: undefined,
  sendProgress: () => Promise.resolve(),
  ...change,
});

/** The default limits, on a clock that stands still. */
export const callParts = (own: Pick<CallParts, 'client'> & Partial<CallParts>): CallParts => ({
  limits: DEFAULT_LIMITS,
  clock: new HandDrivenClock(),
  log: silentLog,
  shutdown: new AbortController().signal,
  beforeAnswer: () => Promise.resolve(),
  ...own,
});
