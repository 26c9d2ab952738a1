/** The Python clients, `mcp` and `fastmcp`, as they come from the index: either era, over HTTP and stdio. */
import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { stdioCommand } from '../support/mcp-clients.ts';
import { pythonWithClients, tellStory } from '../support/python-clients.ts';

const LIMITS = { progressIntervalMs: 0 };

let python: string;
beforeAll(async () => {
  python = await pythonWithClients();
}, 300_000);

let driven: DrivenGateway | null = null;
afterEach(async () => {
  await driven?.gateway.close();
  driven = null;
});

async function place(transport: 'http' | 'stdio'): Promise<string | string[]> {
  if (transport === 'stdio') {
    const { command, args } = stdioCommand(LIMITS);
    return [command, ...args];
  }
  driven = drivenGateway({ limits: LIMITS });
  return `${(await driven.gateway.serveHttp({ port: 0 })).url}/mcp`;
}

describe.each(['http', 'stdio'] as const)('over %s', (transport) => {
  it.each([
    ['mcp', 'auto'],
    ['mcp', 'legacy'],
    ['fastmcp', 'auto'],
    ['fastmcp', 'legacy'],
  ] as const)(
    '%s in mode %s blocks with progress, asks its person in the midst of the call and ends with the result [M3.1] [M4.2] [M7.3] [M1.6]',
    async (library, mode) => {
      const story = await tellStory(python, library, mode, await place(transport));
      expect(story.tools).toEqual(expect.arrayContaining(['transfer', 'task_wait', 'task_answer']));
      expect(story.progress.length).toBeGreaterThan(0);
      expect(story.questions).toEqual([expect.stringContaining('transfer waits for a decision')]);
      expect(story.decisions).toMatchObject([{ kind: 'approve', channel: 'mcp', reason: 'fine' }]);
      expect(story.result).toEqual({ receipt: 'r-1' });
      expect(story.refused).toMatchObject({ error: { code: 'invalid_arguments' } });
    },
  );
});
