/**
 * A person's decision on its way from MCP to the task.
 *
 * The decisionId is made of the task, the approval, the principal and the decision, so that a repeat, over whatever
 * connection and gateway, is the same decision and gets the same answer (S4.3). The fingerprint goes along: what is
 * decided is the call that was shown, never one that took its place.
 */
import { createHash } from 'node:crypto';
import type { DecisionAnswer, TaskClient } from '../client/task-client.ts';
import { HoldfastError } from '../contract/error.ts';
import type { Principal } from '../task/plan.ts';
import type { PersonsDecision } from './approval.ts';
import type { GatewayLog } from './log.ts';

export interface DecidedCall {
  taskId: string;
  callId: string;
  fingerprint: string;
}

/** A refusal is an answer, no error: it changes nothing and is logged here; the task journals it. */
export async function decideOverMcp(
  { client, log }: { client: TaskClient; log: GatewayLog },
  principal: Principal,
  { taskId, callId, fingerprint }: DecidedCall,
  { decision, reason }: PersonsDecision,
): Promise<DecisionAnswer> {
  const answer = await client.decide(taskId, principal, {
    kind: decision,
    callId,
    fingerprint,
    decisionId: decisionIdOf(taskId, callId, principal, decision),
    channel: 'mcp',
    ...(reason !== undefined && { reason }),
  });
  if (!answer.accepted)
    log.warn({ taskId, callId, subject: principal.subject, code: answer.code }, 'a decision was refused');
  return answer;
}

/** What is asked can't be told while no worker answers; an acknowledged decision must not be lost. */
export const notReadable = (): HoldfastError =>
  new HoldfastError(
    'engine_unavailable',
    'No worker could say just now what this task asks for, so no decision was passed on. Decide again in a moment.',
  );

function decisionIdOf(taskId: string, callId: string, principal: Principal, decision: string): string {
  const { tenant, subject } = principal;
  const named = JSON.stringify([taskId, callId, tenant, subject, decision]);
  return `mcp_${createHash('sha256').update(named).digest('hex')}`;
}
