// @modelcontextprotocol/server-everything: reads that pass through, work that reports progress, a task of MCP 2025-11-25.
import { defineConfig } from '../../../src/index.ts';

export default defineConfig({
  actions: [],
  upstreams: {
    everything: {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-everything@2026.8.31'],
      safe: ['echo', 'get-*'],
      tools: {
        // It prints the server's environment, whoever asks.
        'get-env': { hidden: true },
        'trigger-long-running-operation': {
          effect: 'safe',
          durable: true,
          deadlines: { attempt: '2m' },
          cancelAttempt: 'abort',
        },
        // Kept in the memory of the server's process: after a restart of it nobody knows of the task, and it is begun anew.
        'simulate-research-query': { effect: 'safe', durable: true, deadlines: { attempt: '30s' } },
      },
    },
  },
});
