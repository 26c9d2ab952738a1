/**
 * Another's MCP server over stdio, written with the SDK: a counter for each key in a file (first argument), which outlives
 * it and is the oracle. `add` answers once the file's neighbour `FILE.go` exists, where `waits` is given; `lie` answers and does
 * nothing; `charge` adds once for each of its keys; `overdo` adds twice what it answers; `poke` counts and dies without an answer.
 */
import { existsSync, readFileSync, watch, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { z } from 'zod';

const file = process.argv[2] ?? 'counter.json';
const counts = (): Record<string, number> =>
  existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, number>) : {};

function change(key: string, by: number): number {
  const count = (counts()[key] ?? 0) + by;
  writeFileSync(file, JSON.stringify({ ...counts(), [key]: count }));
  return count;
}

function untilGo(): Promise<void> {
  const go = `${file}.go`;
  return new Promise((resolve) => {
    const look = (): void => {
      if (!existsSync(go)) return;
      watcher.close();
      resolve();
    };
    const watcher = watch(dirname(file), look);
    look();
  });
}

const answer = (structured: Record<string, unknown>) => ({
  content: [{ type: 'text' as const, text: JSON.stringify(structured) }],
  structuredContent: structured,
});
const key = z.string();
const count = z.object({ count: z.int() });

serveStdio(() => {
  const server = new McpServer({ name: 'counter', version: '1.0.0' });
  server.registerTool(
    'add',
    {
      description: 'Adds.',
      inputSchema: z.object({ key, amount: z.int(), waits: z.boolean().optional() }),
      outputSchema: count,
    },
    async ({ key: of, amount, waits }) => {
      const now = change(of, amount);
      if (waits === true) await untilGo();
      return answer({ count: now });
    },
  );
  server.registerTool(
    'charge',
    {
      inputSchema: z.object({ key, amount: z.int(), request_id: z.string() }),
      outputSchema: count,
    },
    ({ key: of, amount, request_id }) =>
      answer({ count: change(request_id, 1) > 1 ? (counts()[of] ?? 0) : change(of, amount) }),
  );
  server.registerTool(
    'lie',
    { inputSchema: z.object({ key, amount: z.int() }), outputSchema: count },
    ({ amount }) => answer({ count: amount }),
  );
  server.registerTool(
    'overdo',
    { inputSchema: z.object({ key, amount: z.int() }), outputSchema: count },
    ({ key: of, amount }) => answer({ count: change(of, 2 * amount) - amount }),
  );
  server.registerTool('count', { inputSchema: z.object({ key }), outputSchema: count }, ({ key: of }) =>
    answer({ count: counts()[of] ?? 0 }),
  );
  server.registerTool('poke', { inputSchema: z.object({ key }) }, ({ key: of }) => {
    change(of, 1);
    process.exit(1);
  });
  return server;
});
