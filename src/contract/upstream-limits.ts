/** The part of the table of limits (limits.ts) that is about other people's servers and what a configuration says of them. */
export const UPSTREAM_LIMITS = {
  upstreamsMax: {
    value: 100,
    unit: 'servers',
    what: 'Upstream servers of one configuration',
    why: 'Each is a process or a connection in every gateway and worker.',
    beyond: '`invalid_configuration`',
  },
  upstreamToolsMax: {
    value: 1_000,
    unit: 'tools',
    what: 'Tools that one upstream server lists',
    why: 'Lists are kept in the ledger and sent whole.',
    beyond: 'the list is not taken: the last one stands, or the server is quarantined',
  },
  upstreamListBytesMax: {
    value: 4_194_304,
    unit: 'bytes',
    what: 'The tool list of one upstream server, as JSON',
    why: 'It is kept in the ledger and read by every process.',
    beyond: 'as `upstreamToolsMax`',
  },
  upstreamBeforeBytesMax: {
    value: 8_388_608,
    unit: 'bytes',
    what: 'What `before` reads of one call, as JSON',
    why: 'It is written to the ledger before the effect is sent, for its rollback.',
    beyond: 'the call fails before anything is sent',
  },
  celLengthMax: {
    value: 2_000,
    unit: 'characters',
    what: 'A CEL expression of an upstream tool',
    why: 'A person must be able to read it.',
    beyond: '`invalid_configuration`',
  },
  celStepsMax: {
    value: 1_000_000,
    unit: 'steps',
    what: 'What evaluating a CEL expression may cost: the longest list or map it is given, to the power of its nested macros',
    why: 'It is evaluated between other work, and can’t be interrupted.',
    beyond: 'it has no value: nothing holds, nothing is verified, a person is asked',
  },
  undoStepsMax: {
    value: 10,
    unit: 'entries',
    what: 'Ways of one rollback of an upstream tool, and steps of one way',
    why: 'Each may have to be repeated and looked at by a person.',
    beyond: '`invalid_configuration`',
  },
} as const;
