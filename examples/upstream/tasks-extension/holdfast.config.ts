// A server with the Tasks extension that keeps its tasks on disk (server.ts), over HTTP.
import { defineConfig } from '../../../src/index.ts';

export default defineConfig({
  actions: [],
  upstreams: {
    kiln: {
      url: process.env['KILN_URL'] ?? 'http://127.0.0.1:7415/mcp',
      safe: ['find_batch'],
      tools: {
        fire_batch: {
          effect: 'conditional',
          key: { meta: 'example/idempotencyKey' },
          lookup: {
            tool: 'find_batch',
            args: { key: 'operationId' },
            applied: 'answer.structured.found',
            notApplied: '!answer.structured.found',
            result: {
              batch: 'answer.structured.fired.batch',
              glaze: 'answer.structured.fired.glaze',
              number: 'answer.structured.fired.number',
            },
          },
          verify: {
            tool: 'find_batch',
            args: { key: 'operationId' },
            verified: 'answer.structured.found && answer.structured.fired.batch == args.batch',
          },
          rollback: {
            tool: 'scrap_batch',
            args: { key: 'operationId' },
            remains: "'shards'",
          },
          verifyRollback: {
            tool: 'find_batch',
            args: { key: 'operationId' },
            verified: '!answer.structured.found',
          },
          onCancel: 'rollback',
          deadlines: { attempt: '10s', run: '7d' },
        },
        scrap_batch: { hidden: true },
      },
    },
  },
});
