/**
 * `tasks/get` over HTTP against a bare query of a bare workflow, each on a connection that is kept open. What it adds:
 * HTTP, MCP, the tenant's check, the ledger's row. The gateway runs in this process, as `serve` has it.
 */
import { randomUUID } from 'node:crypto';
import { gatewayOf, listen } from '../../src/cli/serve-gateway.ts';
import { bareCall } from '../calls.ts';
import { figure } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { McpCaller } from '../mcp-caller.ts';
import { ratio, takeTurns } from '../pairs.ts';
import { shorter } from '../size.ts';
import type { Size } from '../size.ts';
import { quantile } from '../statistics.ts';
import { BARE_QUEUE } from '../system.ts';
import type { System } from '../system.ts';

const UNIT = '× bare query';
const booking = { sku: 'widget', quantity: 3 };

export async function readFigures(system: System, size: Size): Promise<Figure[]> {
  const { config, holdfast, principal } = system;
  const gateway = gatewayOf(config, holdfast);
  const mcp = new McpCaller(await listen(gateway, config, holdfast));
  const bare = await waitingBare(system);
  try {
    const [running, ended] = [
      await taskOf(system, 'book_later', false),
      await taskOf(system, 'book_inline', true),
    ];
    const get = (taskId: string, status: string) => ({
      call: async () => {
        const answer = await mcp.getTask(taskId);
        if (answer.status !== status) throw new Error(`${taskId} is ${answer.status}, not ${status}`);
      },
    });
    const contenders = {
      running: get(running, 'working'),
      ended: get(ended, 'completed'),
      query: { call: () => bare.query('progress') },
    };
    await takeTurns(contenders, shorter(size.reads));
    const reads = await takeTurns(contenders, size.reads);
    const tools = {
      tool: { call: () => mcp.callTool('book_inline', booking, randomUUID()) },
      workflow: bareCall(
        { client: holdfast.client, temporal: holdfast.temporal, principal, isEager: true },
        'bareActivity',
      ),
    };
    await takeTurns(tools, shorter(size.tools));
    const calls = await takeTurns(tools, size.tools);
    const p99 = (samples: number[]) => quantile(samples, 0.99) / quantile(reads.query, 0.99);
    return [
      figure('tasks/get of a running task, p50', ratio(reads.running, reads.query), UNIT, { atMost: 1.7 }),
      figure('tasks/get of a running task, p99', p99(reads.running), UNIT),
      figure('tasks/get of an ended task, p50', ratio(reads.ended, reads.query), UNIT, { atMost: 1.2 }),
      figure('tasks/get of an ended task, p99', p99(reads.ended), UNIT),
      figure(
        'tools/call over HTTP, inline, p50',
        ratio(calls.tool, calls.workflow),
        '× bare workflow, one activity',
      ),
    ];
  } finally {
    mcp.close();
    await bare.terminate();
    await gateway.close();
  }
}

/** A task that waits, or one that has ended. */
async function taskOf({ holdfast, principal }: System, action: string, hasEnded: boolean): Promise<string> {
  const { client } = holdfast;
  const { taskId } = await client.start({ action, args: { ...booking }, key: randomUUID(), principal });
  if (hasEnded) await client.wait(taskId, principal, { timeoutMs: 60_000 });
  else await client.wait(taskId, principal, { timeoutMs: 500 }); // until its first attempt was put off
  return taskId;
}

function waitingBare({ holdfast }: System) {
  return holdfast.temporal.workflow.start('bareWaiting', {
    workflowId: randomUUID(),
    taskQueue: BARE_QUEUE,
    args: [booking],
  });
}
