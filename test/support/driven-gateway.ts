/**
 * A gateway over a `HandDrivenTaskClient`, with tools that drive it: a test moves tasks through the very connection it
 * looks at, so the same test runs over HTTP in this process and over stdio in another.
 *
 * `transfer` and `read_balance` are what is called; `advance`, `release`, `reject` and `lose` move the open task
 * started last; `ask` opens an approval of it, and `decisions` answers what was decided since; `burst` tells of steps,
 * ends the task and tells of more, in one turn; `open_tasks` counts, `cancels` lists, and `listening` says of how many
 * tasks anybody here wants to hear.
 */
import * as z from 'zod';
import type { ApprovalView, DecisionAnswer, DecisionInput } from '../../src/client/task-client.ts';
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
const ask = safe('ask', z.object({ approval: z.record(z.string(), z.json()).optional() }));
const decisions = safe('decisions', z.object({}));
const burst = safe('burst', z.object({ before: z.int(), after: z.int() }));
const cancels = safe('cancels', z.object({}));
const openTasks = safe('open_tasks', z.object({}));
const listening = safe('listening', z.object({}));

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
  client.immediate.set('burst', (args) => {
    const { before, after } = args as { before: number; after: number };
    const tell = (steps: number) => {
      for (let step = 1; step <= steps; step += 1) client.move({ statusMessage: `step ${step}` });
    };
    tell(before);
    client.complete(null);
    tell(after);
    return done(null);
  });
  client.immediate.set('cancels', () =>
    done({ cancels: client.cancels.map(({ taskId, reason = null }) => ({ taskId, reason })) }),
  );
  client.immediate.set('open_tasks', () => done({ open: client.openTasks }));
  client.immediate.set('listening', () => done({ tasks: client.subscribers }));
  client.immediate.set('ask', (args) => {
    const { approval } = args as { approval?: Partial<ApprovalView> };
    client.move({
      status: 'awaiting_approval',
      statusMessage: 'Waiting for a person’s decision.',
      approval: openApproval(approval),
    });
    return done(null);
  });
  client.immediate.set('decisions', () =>
    done({ decisions: client.decisions.map(({ decision }) => decision) as unknown as Json }),
  );
  client.onDecision = (decision, taskId) => decideAsTasksDo(client, decision, taskId);
  client.immediate.set('lose', () => {
    client.move({ status: 'needs_attention', statusMessage: 'a person is alerted' });
    return done(null);
  });
  return client;
}

/** An approval that this connection may answer, by the very principal that asked. */
export const openApproval = (change: Partial<ApprovalView> = {}): ApprovalView => ({
  callId: 'action#1',
  action: 'transfer',
  openedAt: 1_800_000_000_000,
  expiresAt: 1_800_086_400_000,
  fingerprint: 'sha256-of-the-call',
  view: {
    arguments: { to: 'bob', amount: 5, pin: '[redacted]' },
    requester: LOCAL.subject,
    effect: 'conditional',
    precondition: { readAt: '2027-01-15T08:00:00.000Z', kind: 'fails', reason: 'account is frozen' },
    rollback: { kind: 'inBand' },
    onCancel: 'keep',
    ...(change.challenge != null && { challenge: change.challenge }),
  },
  roles: [],
  approvedBy: [],
  quorum: 1,
  requesterMayDecide: true,
  mayAnswerOverMcp: true,
  onExpiry: 'deny',
  challenge: null,
  ...change,
});

/** The policy of src/task/judge-decision.ts, as far as the gateway meets it. */
function decideAsTasksDo(
  client: HandDrivenTaskClient,
  decision: DecisionInput,
  taskId: string,
): DecisionAnswer {
  const { approval, status } = client.answerOf(taskId);
  const refuse = (code: 'not_open' | 'not_allowed') => ({ accepted: false, code, status, message: 'no' });
  if (approval?.callId !== decision.callId) return refuse('not_open');
  if (decision.channel === 'mcp' && !approval?.mayAnswerOverMcp) return refuse('not_allowed');
  if (approval && approval.roles.length > 0 && !approval.roles.includes('local'))
    return refuse('not_allowed');
  if (decision.kind === 'approve') {
    client.move({ status: 'running', statusMessage: 'approved', approval: null }, taskId);
    return { accepted: true, code: 'approved', status: 'running' };
  }
  const message = `Rejected: ${decision.reason ?? ''}`;
  client.fail({ code: 'approval_rejected', message }, { cause: 'approval_rejected', approval: null }, taskId);
  return { accepted: true, code: 'rejected', status: 'failed' };
}

export const drivenTools = [
  transfer,
  readBalance,
  advance,
  release,
  reject,
  lose,
  ask,
  decisions,
  burst,
  cancels,
  openTasks,
  listening,
].map(toolOf);

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
