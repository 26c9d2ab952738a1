// A FastMCP server whose tools answer with background tasks (server.py), over HTTP.
import { defineConfig } from '../../../src/index.ts';

const found = { tool: 'find_edition', args: { idempotency_key: 'operationId' } };
const print = {
  effect: 'conditional',
  key: { argument: 'idempotency_key' },
  lookup: {
    ...found,
    applied: '!answer.isError && answer.structured.found',
    // Of a task under way it would say so too: not conclusive.
    notApplied: '!answer.isError && !answer.structured.found',
    result: {
      edition: 'answer.structured.edition',
      text: 'answer.structured.text',
      run: 'answer.structured.run',
    },
  },
  verify: {
    ...found,
    verified: '!answer.isError && answer.structured.found && answer.structured.edition == args.edition',
  },
  rollback: {
    tool: 'withdraw_edition',
    args: { idempotency_key: 'operationId' },
    remains: "'copies that were sold'",
  },
  verifyRollback: {
    tool: 'find_edition',
    args: { idempotency_key: 'operationId' },
    verified: '!answer.isError && !answer.structured.found',
  },
  onCancel: 'rollback',
  deadlines: { attempt: '10s', run: '7d' },
} as const;

export default defineConfig({
  actions: [],
  upstreams: {
    press: {
      url: process.env['PRESS_URL'] ?? 'http://127.0.0.1:7416/mcp',
      safe: ['find_edition'],
      tools: { print_edition: print, print_with_imprint: print, withdraw_edition: { hidden: true } },
    },
  },
});
