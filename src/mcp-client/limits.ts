/** The client's own time spans and bounds, once; docs/limits.md is generated from this table. */
interface ClientLimit {
  value: number;
  unit: 'ms' | 'requests' | 'tools';
  what: string;
}

export const MCP_CLIENT_LIMITS = {
  idleMs: {
    value: 60_000,
    unit: 'ms',
    what: 'M4.1: how long a call goes on without progress; `timeouts.idleMs` wins over it. Beyond: the request is lost.',
  },
  readIdleMs: {
    value: 10_000,
    unit: 'ms',
    what: 'The same for reads, cancels, answers and the list of tools.',
  },
  maximumMs: {
    value: 300_000,
    unit: 'ms',
    what: 'M4.1: a call with its repeats and the wait for its task; `timeouts.maximumMs` wins over it. Beyond: `unknown` with the task to ask.',
  },
  handshakeMs: {
    value: 30_000,
    unit: 'ms',
    what: 'How long a server takes to open a connection, above what a process on a busy machine needs to start: one that times out is taken for an old server.',
  },
  publishedMs: {
    value: 300_000,
    unit: 'ms',
    what: 'How long a list of tools is used; a gateway may be replaced by one with other contracts.',
  },
  unlistedMs: {
    value: 30_000,
    unit: 'ms',
    what: 'How long a tool that is not on the list counts as not published before the list is read again.',
  },
  unlistedMax: {
    value: 1_000,
    unit: 'tools',
    what: 'How many of those are remembered; one more forgets the others.',
  },
  lostRequestsMax: {
    value: 10,
    unit: 'requests',
    what: 'M6.3: repeats of a request that may have been carried out; what never left is not counted. Beyond: `unknown`.',
  },
  findMs: {
    value: 5_000,
    unit: 'ms',
    what: 'M6.3: how long after its loss an unsafe call is looked for under its key while the server finds nothing; a server that is away is waited for until the maximum. Beyond: `unknown`.',
  },
  pollMs: {
    value: 1_000,
    unit: 'ms',
    what: 'From one read of a task to the next where the server names no interval.',
  },
  patientPollMs: {
    value: 5_000,
    unit: 'ms',
    what: 'What a wait adds to the task’s own interval at most: a tenth of the time waited so far.',
  },
  safetyReadMs: {
    value: 30_000,
    unit: 'ms',
    what: 'M2.5: how often a task is read that the server promised to tell about.',
  },
  backoffInitialMs: {
    value: 250,
    unit: 'ms',
    what: 'M6.3: the widest first wait before a repeat; it doubles.',
  },
  backoffMs: {
    value: 8_000,
    unit: 'ms',
    what: 'M6.3: the widest wait before a repeat, a `Retry-After` apart.',
  },
} as const satisfies Record<string, ClientLimit>;
