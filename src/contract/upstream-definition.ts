/**
 * What a configuration says about other people's MCP servers (M8.1): how to reach each, and what its tools promise. Types
 * only; upstream-schema.ts checks the shape, src/upstream what it says against the lists that the servers publish.
 */
import type { Json } from '../task/json.ts';
import type { EffectClass } from '../task/plan.ts';
import type { ApprovalRule, DeadlinesDefinition, RetryDefinition } from './define-action.ts';

/** Read from the environment of the process that connects; never written down. */
export interface EnvReference {
  /** The variable's name. */
  env: string;
  /** Put in front of its value, for example `'Bearer '`. */
  prefix?: string;
}

export type UpstreamSetting = string | EnvReference;

/** A CEL expression, or a value that is passed as it is. */
export type UpstreamArgument = string | { value: Json };

/** A call of another tool of the same server. */
export interface UpstreamAsk {
  tool: string;
  /** By name; each CEL, or `{ value }`. */
  args?: Record<string, UpstreamArgument>;
}

/** What is read before a condition is judged: one call, whose answer is `answer`, or several, whose answers are `reads.NAME`. */
export interface UpstreamReads {
  tool?: string;
  args?: Record<string, UpstreamArgument>;
  reads?: Record<string, UpstreamAsk>;
}

export interface UpstreamPrecondition extends UpstreamReads {
  /** CEL: true where the effect may be brought about. */
  holds: string;
  /** What a person reads where it does not. */
  reason?: string;
}

export interface UpstreamLookup extends UpstreamReads {
  /** CEL: true where the effect is there. */
  applied: string;
  /** CEL: true where it is not. Neither: unknown. */
  notApplied?: string;
  /** S2.4: `notApplied` is final once the attempt's deadline and `settle` have passed. Default false. */
  conclusive?: boolean;
  /** The result of a call whose own answer was lost: an object, each member CEL or `{ value }`. Default: what `tool` answered. */
  result?: Record<string, UpstreamArgument>;
}

export interface UpstreamVerify extends UpstreamReads {
  /** CEL: true where the effect is as promised. */
  verified: string;
  /** CEL: true where it can't be told yet. Neither: the effect is not as promised, and is undone. */
  notYet?: string;
}

/** One way to undo the effect: one call, or several in this order. */
export interface UpstreamWay {
  /** CEL: the first way whose `when` is true is taken. Default true. */
  when?: string;
  tool?: string;
  args?: Record<string, UpstreamArgument>;
  /** Instead of `tool` and `args`. */
  steps?: UpstreamAsk[];
  /** CEL text: what is left behind. */
  remains?: string;
}

interface Undoing {
  /** S6.1. Default `compensate`. */
  kind?: 'inBand' | 'compensate';
  /** Read before a way is chosen, as `reads.NAME`. */
  reads?: Record<string, UpstreamAsk>;
}

/** `none` and `outOfBand` say why. */
export type UpstreamRollback =
  { none: string } | { outOfBand: string } | (Undoing & UpstreamWay) | (Undoing & { ways: UpstreamWay[] });

/** How the server is told the operation id, so that it dedupes by it. */
export type UpstreamKey =
  | { argument: string }
  | { header: string }
  | { meta: string }
  /** Nothing is passed on: why the same arguments have their effect once however often they are sent. */
  | { natural: string };

export interface UpstreamToolDefinition {
  /** Shown to clients instead of `SERVER__TOOL`. */
  as?: string;
  /** Never offered; other tools may still be undone or verified by it. */
  hidden?: boolean;
  /** S5.1. Default `unsafe`. `conditional` needs `key`. */
  effect?: EffectClass;
  /** Of a safe tool: recorded in the ledger like the others, instead of being passed through. */
  durable?: boolean;
  /** A tool of 2025-11-25 that may be called as a task (`taskSupport: 'optional'`) is. Default false. */
  asTask?: boolean;
  key?: UpstreamKey;
  /** Read immediately before the effect and kept in the ledger, as `before.NAME`, for what undoes and proves it. */
  before?: Record<string, UpstreamAsk>;
  precondition?: UpstreamPrecondition;
  /** CEL over `result`: an answer with `isError` that proves that nothing was done. Default: it proves nothing. */
  refused?: string;
  lookup?: UpstreamLookup;
  verify?: UpstreamVerify | { none: string };
  rollback?: UpstreamRollback;
  /** What proves that a rollback worked; also asked before it is tried. */
  verifyRollback?: UpstreamVerify;
  /** `when`: CEL over `args`. What can't be judged asks a person. */
  approval?: ApprovalRule & { when?: string };
  deadlines?: DeadlinesDefinition;
  retry?: RetryDefinition;
  onCancel?: 'keep' | 'rollback';
  cancelAttempt?: 'finish' | 'abort';
  onAbandon?: 'continue' | 'cancel';
  /** JSON pointers, `*` for any member: never stored, shown or logged. `result` is the tool's answer: `/structuredContent/token`. */
  sensitive?: { args?: string[]; result?: string[] };
  /** CEL text over `args`: tasks that name the same resource run one at a time. */
  resource?: string;
  /** How long a task holds its resource (S8). */
  lease?: DeadlinesDefinition['attempt'];
  /** M1.4: a keyless call meets an open one with equal arguments of the same principal. Default true. */
  attach?: boolean;
}

/** One server. Either `command` or `url`. */
export interface UpstreamDefinition {
  /** What the ledger knows it by. Default: the entry's name. Set it to the old name when the entry is renamed. */
  identity?: string;
  command?: string;
  args?: UpstreamSetting[];
  env?: Record<string, UpstreamSetting>;
  cwd?: string;
  url?: string;
  /** Any of them may be a secret, whatever its name. */
  headers?: Record<string, EnvReference>;
  /** Whether tools that `tools` and `safe` do not name are offered, as unsafe ones. Default `all`. */
  expose?: 'all' | 'configured';
  /** Names of tools that only read; a `*` at the end stands for any rest. */
  safe?: string[];
  /**
   * For every tool of the server that does not say otherwise; of these, `deadlines` and `retry` alone for safe ones, and
   * `onCancel: 'rollback'` for those with a rollback.
   */
  defaults?: Pick<
    UpstreamToolDefinition,
    'approval' | 'deadlines' | 'retry' | 'onCancel' | 'cancelAttempt' | 'onAbandon' | 'attach'
  >;
  tools?: Record<string, UpstreamToolDefinition>;
}

/** How a server is reached, with everything from the environment filled in. Holds secrets: never logged or stored. */
export type UpstreamTarget = {
  name: string;
  identity: string;
  /** What was taken from the environment, each with its prefix and without: never shown. */
  secrets: string[];
} & (
  | { kind: 'stdio'; command: string; args: string[]; env: Record<string, string>; cwd?: string }
  | { kind: 'http'; url: string; headers: Record<string, string> }
);
