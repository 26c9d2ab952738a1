/**
 * Tasks that other servers keep for operations of ours, as the ledger has them (S8.4): a part of it, kept in remote-task.ts.
 * docs/remote-tasks.md has the table of phases.
 */
import type { RemoteTaskHandle } from '../contract/remote-server.ts';
import type { Claim } from '../task/claim.ts';
import type { StoredResult } from '../task/outcome.ts';
import type { RemoteSeen } from '../task/remote.ts';
import type { OperationRow } from './ledger.ts';

/** `cancelling`: a cancel was asked for and not taken by the server yet. `ended`: by the server's word, for good. */
export type RemotePhase = 'working' | 'cancelling' | 'cancel_sent' | 'ended';

/** A control call about the remote task. One at a time. */
export type RemoteCall = 'poll' | 'cancel' | 'answer';

export interface RemoteTaskRow {
  operationId: string;
  /** Ours. */
  taskId: string;
  tenant: string;
  action: string;
  handle: RemoteTaskHandle;
  phase: RemotePhase;
  /** What the newest poll saw; null before the first. */
  seen: RemoteSeen | null;
  /** Of a completed one; null where it was not kept. */
  result: StoredResult | null;
  /** Control calls in a row that failed. A call that was stopped or overtaken is none. */
  failures: number;
  lastError: string | null;
  /** Grows with each call whose outcome was written. */
  seq: number;
  /** All times by the database's clock. */
  pollDueAt: number;
  lastPolledAt: number | null;
  cancelRequestedAt: number | null;
  cancelSentAt: number | null;
  /** From then on the server may have forgotten it; null: it says nothing, or never. */
  ttlUntil: number | null;
  /** The remote's keys that were answered. */
  answered: string[];
  /** Whether an earlier execution may have applied the effect when this one began. */
  inDoubtBefore: boolean;
  claim: { worker: string; call: RemoteCall; leaseUntil: number } | null;
  startedAt: number;
  updatedAt: number;
}

/** Proof of a claim. What is written under another token or another sequence than the row's changes nothing. */
export interface RemoteClaim {
  operationId: string;
  worker: string;
  call: RemoteCall;
  token: string;
  seq: number;
}

export type RemoteClaimAnswer =
  | { kind: 'granted'; claim: RemoteClaim; row: RemoteTaskRow }
  /** Another call is under way, or its worker died and the lease has not passed. */
  | { kind: 'busy'; retryAfterMs: number }
  /** The server is not to be asked yet. */
  | { kind: 'not_due'; retryAfterMs: number }
  /** A cancel was asked for and goes first. */
  | { kind: 'superseded' }
  /** The cancel was sent, or these keys were answered. */
  | { kind: 'done'; row: RemoteTaskRow }
  | { kind: 'ended'; row: RemoteTaskRow }
  /** There is no such task, or no cancel of it was asked for. */
  | { kind: 'unknown' };

/** How a control call ended. `dueInMs`: until the next poll, shortened where the remote's ttl asks for it. */
export type RemoteCallOutcome =
  | { kind: 'seen'; seen: RemoteSeen; result: StoredResult | null; dueInMs: number }
  | { kind: 'cancel_sent'; dueInMs: number }
  | { kind: 'answered'; keys: string[]; dueInMs: number }
  /** `alertAt`: the number of failures in a row with which a person is alerted. */
  | { kind: 'failed'; message: string; dueInMs: number; alertAt: number };

export type RemoteSettled =
  { kind: 'written'; row: RemoteTaskRow } | { kind: 'fence_stale'; row: RemoteTaskRow | null };

export interface RemoteTasks {
  /**
   * Under the operation's own claim, whose intent the remote task came of. `known`: this very task was registered before.
   * `stale`: the claim was taken over; `another`: the operation has a remote task that may be alive. Neither changes anything.
   */
  registerRemoteTask(
    claim: Claim,
    remote: { handle: RemoteTaskHandle; inDoubtBefore: boolean },
  ): Promise<
    | { kind: 'registered' | 'known' | 'another'; row: RemoteTaskRow }
    | { kind: 'stale'; operation: OperationRow }
  >;
  findRemoteTask(operationId: string): Promise<RemoteTaskRow | null>;
  /** From now on no poll is claimed before the cancel was sent. A repeat changes nothing, least of all a cancel under way. */
  askRemoteCancel(operationId: string): Promise<RemoteTaskRow | null>;
  /** Only where no other holds an unexpired lease. `keys`: of an answer. */
  claimRemoteCall(request: {
    operationId: string;
    call: RemoteCall;
    worker: string;
    leaseMs: number;
    keys?: readonly string[];
  }): Promise<RemoteClaimAnswer>;
  /**
   * Matches task, worker, token, kind of call, unexpired lease and a phase in which that call has a point. Touches neither
   * counter nor any other time, never shortens. False: overtaken.
   */
  renewRemoteCall(claim: RemoteClaim, leaseMs: number): Promise<boolean>;
  /** Ends the claim with what came of its call. A repeat under the same token answers as the first did. */
  settleRemoteCall(claim: RemoteClaim, outcome: RemoteCallOutcome): Promise<RemoteSettled>;
  /** Gives the claim back as if the call had not been made: no failure, no activity. False: it was not the row's any more. */
  releaseRemoteCall(claim: RemoteClaim): Promise<boolean>;
}
