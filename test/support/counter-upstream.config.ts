/** A counter of somebody else’s behind Holdfast, by configuration alone; HOLDFAST_TEST_COUNTER names its file. */
import { fileURLToPath } from 'node:url';
import { defineConfig } from '../../src/contract/define-config.ts';
import type { UpstreamToolDefinition } from '../../src/contract/upstream-definition.ts';

const server = fileURLToPath(new URL('./counter-upstream.ts', import.meta.url));
const read = { tool: 'count', args: { key: 'args.key' } };

const promises: UpstreamToolDefinition = {
  before: { old: read },
  approval: { when: 'args.amount > 100', roles: ['boss'] },
  verify: { ...read, verified: 'answer.structured.count == before.old.structured.count + args.amount' },
  lookup: {
    ...read,
    applied: 'answer.structured.count == before.old.structured.count + args.amount',
    notApplied: 'answer.structured.count == before.old.structured.count',
  },
  rollback: { tool: 'add', args: { key: 'args.key', amount: '-args.amount' } },
  verifyRollback: { ...read, verified: 'answer.structured.count == before.old.structured.count' },
  onCancel: 'rollback',
};

/** Nothing tells whether it acted: only that what it did is not what was asked for. */
const withoutLookup: UpstreamToolDefinition = {
  before: { old: read },
  verify: { ...read, verified: 'answer.structured.count == before.old.structured.count + args.amount' },
  rollback: {
    reads: { now: read },
    ways: [
      {
        when: 'reads.now.structured.count != before.old.structured.count',
        tool: 'add',
        args: { key: 'args.key', amount: 'before.old.structured.count - reads.now.structured.count' },
      },
    ],
  },
  verifyRollback: { ...read, verified: 'answer.structured.count == before.old.structured.count' },
};

export default defineConfig({
  actions: [],
  upstreams: {
    counter: {
      command: process.execPath,
      args: ['--experimental-strip-types', server, { env: 'HOLDFAST_TEST_COUNTER' }],
      safe: ['count'],
      tools: {
        add: promises,
        lie: { ...promises, as: 'add_lying', onCancel: 'keep' },
        overdo: withoutLookup,
        charge: { effect: 'conditional', key: { argument: 'request_id' } },
      },
    },
    nobody: { command: 'holdfast-test-no-such-command' },
  },
});
