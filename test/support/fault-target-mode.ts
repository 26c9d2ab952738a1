/**
 * What the fault target can be told to do with a request. Plain JSON: it crosses to another process.
 * "Before" and "after" are seen from the effect, the moment the target's own counter grows.
 */

/** A named barrier: whatever reaches it waits until it is released; a released gate stays open until `reset`. */
export type Gate = string;

export type Mode =
  /** Does what it says. */
  | { kind: 'ok' }
  /** Resets the connection without having done anything: the caller can't tell this from `applyThenDrop`. */
  | { kind: 'dropBefore' }
  | { kind: 'applyThenDrop' }
  /** Applies and sends half of a 200 answer. */
  | { kind: 'applyThenTruncate' }
  /** Applies and never answers. */
  | { kind: 'applyThenHang' }
  /** Drops the connection first and applies afterwards, at once or when the gate is released. */
  | { kind: 'dropThenApply'; gate?: Gate }
  /** Waits at the gate; the caller may be killed meanwhile. The effect takes place all the same. */
  | { kind: 'hold'; gate: Gate; when: 'beforeApply' | 'afterApply' }
  /** Answers with this status before applying: 429 and 503 take `retryAfterSeconds`; 400, 409, 422 are for good. */
  | { kind: 'refuse'; status: number; retryAfterSeconds?: number; message?: string }
  /** A gateway's answer: it doesn't say whether the effect took place. */
  | { kind: 'proxyError'; status: 500 | 502 | 504; applies: boolean }
  /** 200, and nothing happened. */
  | { kind: 'lie' }
  /** 200 as asked, and something else happened. */
  | { kind: 'applyOther'; value: string }
  /** Applies; look-ups and read-backs don't show it for the next `looks` of them, or until the gate is released. */
  | { kind: 'applyUnseen'; looks: number }
  | { kind: 'applyUnseen'; gate: Gate };

export type Endpoint = 'apply' | 'undo' | 'lookup' | 'read';

/** A mode for the requests that fit. The rule set last is tried first; without any, `ok`. */
export interface Rule {
  mode: Mode;
  /** Default `apply`. For `undo`, "apply" in a mode's name means undoing; for `lookup` and `read`, use `refuse`, `dropBefore`, `hold`. */
  endpoint?: Endpoint;
  action?: string;
  operationId?: string;
  /** How many requests it holds for; then the rule is gone. Default: all. */
  times?: number;
}

/** One request as it arrived, whatever came of it. */
export interface RequestRecord {
  endpoint: Endpoint;
  action: string | null;
  operationId: string | null;
  fence: string | null;
  mode: Mode['kind'];
}

/** What really happened, by the target's own book. */
export interface Report {
  /** Effects that took place, undone or not. The oracle of "once". */
  total: number;
  undoneTotal: number;
  /** Effects and undos by operationId. */
  applied: Record<string, number>;
  undone: Record<string, number>;
  requests: RequestRecord[];
}

export interface Resource {
  resourceId: string;
  operationId: string;
  action: string;
  value: string;
  undone: boolean;
}
