/** What `holdfast/mcp-client` does when a connection is lost: its own tables, and the waits between its tries. */
import { BACKOFF, createBackoff, seededRandom } from '../../src/mcp-client/backoff.ts';
import { reconnectTable, retryTable } from '../../src/mcp-client/reference.ts';
import { table } from './page.ts';

const SEEDS = [1, 2, 3];
const TRIES = 8;

export function reconnectPlanPage(): string {
  const bounds = Array.from({ length: TRIES }, (_, n) =>
    Math.min(BACKOFF.capMs, BACKOFF.initialMs * BACKOFF.factor ** n),
  );
  const waits = SEEDS.map((seed) => {
    const backoff = createBackoff(seededRandom(seed));
    return [`seed ${seed}`, ...bounds.map(() => `${backoff.next()}`)];
  });
  return `# Reconnect plan

Written by \`npm run evidence\` from the tables that \`holdfast/mcp-client\` itself decides by (\`src/mcp-client/reconnect-plan.ts\`,
\`retry-matrix.ts\`, \`backoff.ts\`). Nothing is resumed: no \`Last-Event-ID\`, and no state is taken from what a stream said last.

## What was under way, and the authoritative read

${reconnectTable()}
## Whether a call is sent again, by its effect class

${retryTable()}
## How long it waits, in milliseconds

Capped exponential backoff with full jitter: each wait is anywhere between 0 and its bound. \`Retry-After\` is waited for in full, with the jitter on top.

${table(['try', ...bounds.map((_, n) => String(n + 1))], [['at most', ...bounds.map(String)], ...waits])}
500 clients that lose their gateway at one moment: \`test/e2e/mcp-client-restart.test.ts\`.
`;
}
