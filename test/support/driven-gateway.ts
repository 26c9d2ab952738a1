/**
 * A gateway over a `HandDrivenTaskClient`, with tools that drive it: a test moves tasks through the very connection it
 * looks at, so the same test runs over HTTP in this process and over stdio in another.
 *
 * `transfer` and `read_balance` are what is called; `advance`, `release`, `reject` and `lose` move the open task
 * started last; `open_tasks` counts.
 */
import * as z from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { createGateway } from '../../src/gateway/index.ts';
import type { Gateway, GatewayOptions } from '../../src/gateway/index.ts';
import { toolOf } from '../../src/gateway/index.ts';
import type { Json } from '../../src/task/json.ts';
import type { Principal } from '../../src/task/plan.ts';
import { HandDrivenTaskClient } from './hand-driven-task-client.ts';

export const LOCAL: Principal = { tenant: 'local', subject: 'tester', roles: [] };

const output = z.json();
const safe = (name: string, input: z.ZodObject) =>
  defineAction({ name, version: 1, description: name, input, output, effect: 'safe' });

export const transfer = defineAction({
  name: 'transfer',
  version: 1,
  description: 'Moves money.',
  input: z.object({ to: z.string(), amount: z.int() }),
  output,
  effect: 'conditional',
  rollback: { kind: 'inBand' },
  verify: { none: 'the book is the proof' },
});
const readBalance = safe('read_balance', z.object({ account: z.string() }));
const advance = safe('advance', z.object({ message: z.string() }));
const release = safe('release', z.object({ result: z.json() }));
const reject = safe('reject', z.object({ code: z.string(), message: z.string() }));
const lose = safe('lose', z.object({}));
const openTasks = safe('open_tasks', z.object({}));

export function drivenClient(): HandDrivenTaskClient {
  const client = new HandDrivenTaskClient();
  const done = (result: Json) => ({
    status: 'completed' as const,
    effect: 'none' as const,
    cause: 'committed' as const,
    result,
  });
  client.immediate.set('advance', (args) => {
    client.move({ statusMessage: (args as { message: string }).message });
    return done(null);
  });
  client.immediate.set('release', (args) => {
    client.complete((args as { result: Json }).result);
    return done(null);
  });
  client.immediate.set('reject', (args) => {
    client.fail(args as { code: string; message: string });
    return done(null);
  });
  client.immediate.set('open_tasks', () => done({ open: client.openTasks }));
  client.immediate.set('lose', () => {
    client.move({ status: 'needs_attention', statusMessage: 'a person is alerted' });
    return done(null);
  });
  return client;
}

export const drivenTools = [transfer, readBalance, advance, release, reject, lose, openTasks].map(toolOf);

export interface DrivenGateway {
  gateway: Gateway;
  client: HandDrivenTaskClient;
}

/** Spans are short where a test would otherwise sit them out; none of them is waited for to pass. */
export function drivenGateway(options: Partial<GatewayOptions> = {}): DrivenGateway {
  const client = drivenClient();
  const gateway = createGateway({
    client,
    tools: drivenTools,
    auth: { kind: 'loopback', principal: LOCAL },
    ...options,
  });
  return { gateway, client };
}
