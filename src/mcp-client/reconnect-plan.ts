/**
 * What is done about each thing that was under way when a connection was lost (M6.3). Pure; docs/mcp-client.md prints it.
 *
 * Invariants:
 * 1. Every step is a new request under a new id. No `Last-Event-ID`: nobody keeps what a stream had still to say.
 * 2. What a stream said last is never taken for the state of anything; each kind names the read that is.
 * 3. A watch is restored with what it still waits for, and each of its tasks is read after the stream stands, since
 *    what happened in between was told to nobody.
 */
import { retryVerdict } from './retry-matrix.ts';
import type { SentCall } from './retry-matrix.ts';

export type UnderWay =
  | ({ kind: 'call' } & SentCall)
  | { kind: 'tools' }
  | { kind: 'read'; taskId: string }
  | { kind: 'cancel'; taskId: string }
  | { kind: 'answer'; taskId: string }
  | { kind: 'watch'; taskIds: readonly string[] };

export type ReconnectStep =
  | { do: 'call_again'; sameKey: boolean }
  | { do: 'list_tools' }
  | { do: 'listen'; taskIds: readonly string[] }
  | { do: 'read_task'; taskId: string }
  | { do: 'cancel_again'; taskId: string }
  /** After the read: only if the task still asks for it. */
  | { do: 'answer_if_asked'; taskId: string }
  /** By tool and key. Found, it is read like any other; else the call is reported unknown. */
  | { do: 'find_task' }
  | { do: 'report_unknown' };

export function planAfterLoss(underWay: UnderWay): ReconnectStep[] {
  switch (underWay.kind) {
    case 'call':
      return planForCall(underWay);
    case 'tools':
      return [{ do: 'list_tools' }];
    case 'read':
      return [{ do: 'read_task', taskId: underWay.taskId }];
    case 'cancel':
      return [{ do: 'cancel_again', taskId: underWay.taskId }];
    case 'answer':
      return [
        { do: 'read_task', taskId: underWay.taskId },
        { do: 'answer_if_asked', taskId: underWay.taskId },
      ];
    case 'watch': {
      const taskIds = [...new Set(underWay.taskIds)];
      if (taskIds.length === 0) return [];
      return [
        { do: 'listen', taskIds },
        ...taskIds.map((taskId): ReconnectStep => ({ do: 'read_task', taskId })),
      ];
    }
    default:
      return underWay satisfies never;
  }
}

function planForCall(call: Extract<UnderWay, { kind: 'call' }>): ReconnectStep[] {
  const verdict = retryVerdict(call, 'lost');
  switch (verdict) {
    case 'again_new_id':
      return [{ do: 'call_again', sameKey: false }];
    case 'again_same_key':
      return [{ do: 'call_again', sameKey: true }];
    case 'read_task':
      return [{ do: 'read_task', taskId: call.taskId as string }];
    case 'find_task':
      return [{ do: 'find_task' }];
    case 'unknown':
    case 'refused':
      return [{ do: 'report_unknown' }];
    default:
      return verdict satisfies never;
  }
}
