/**
 * The fourteen ways in which calls over MCP fail in production, what is seen of each, and the right response. A test that
 * proves a response names it: `test('… [mode 4]')`. docs/failure-modes.md is written from this table and those names.
 */
export interface FailureMode {
  failure: string;
  seen: string;
  response: string;
}

export const FAILURE_MODES: readonly FailureMode[] = [
  {
    failure: 'An HTTP client POSTs a cancel notification',
    seen: 'both ends disagree about the request’s life',
    response: 'the closed response stream is the signal; the notification does nothing',
  },
  {
    failure: 'The server answers after it accepted a cancel',
    seen: 'a late result that nobody can use',
    response: 'when the cancel wins, nothing more is sent for that request',
  },
  {
    failure: 'Progress resets every deadline',
    seen: 'hung work lives for ever',
    response: 'a maximum of its own, which nothing resets',
  },
  {
    failure: 'A new JSON-RPC id is taken for deduplication',
    seen: 'a charge, a deploy, a delete runs twice',
    response: 'a durable idempotency key of the application’s',
  },
  {
    failure: 'Checking the key and having the effect are apart',
    seen: 'two workers both see no key',
    response: 'claim and intent before the effect, record and result as one',
  },
  {
    failure: 'The record is in memory, and there are replicas',
    seen: 'a restart forgets what was committed',
    response: 'a shared durable store',
  },
  {
    failure: 'The stored result itself is handed out',
    seen: 'what a caller does to it spoils every replay',
    response: 'stored as text, parsed anew for every reader',
  },
  {
    failure: 'A key is used again with other arguments',
    seen: 'one key stands for two intents',
    response: 'a stored fingerprint, compared; the conflict names the paths',
  },
  {
    failure: 'The progress queue has no bound',
    seen: 'memory grows with a slow reader',
    response: 'coalesced, and dropped within a bound; a stalled reader is cut',
  },
  {
    failure: 'The final response is dropped under pressure',
    seen: 'the client can not know the outcome',
    response: 'progress goes, the final response never',
  },
  {
    failure: 'A proxy buffers the stream',
    seen: 'progress in bursts, or after the timeout',
    response: 'headers that switch buffering off, a first byte at once, keepalives',
  },
  {
    failure: '`Last-Event-ID` is counted on',
    seen: 'the client resumes from a state that nobody has',
    response: 'a new request, and an authoritative read',
  },
  {
    failure: 'Every client reconnects at once',
    seen: 'the recovery is the next outage',
    response: 'capped exponential backoff with full jitter',
  },
  {
    failure: 'The acknowledgement of a cancel is taken for the end',
    seen: 'work goes on after the page says it stopped',
    response: '“requested” until the task’s own status is terminal',
  },
];
