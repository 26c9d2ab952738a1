/** One tool's promises, compiled: what its handlers interpret. Plain parts; nothing here is called yet. */
import type { Expression } from '../cel/expression.ts';
import type { CompiledCall, CompiledReads } from './asking.ts';

export interface Condition {
  reads: CompiledReads;
  expression: Expression;
}

export interface Verification extends Condition {
  notYet: Expression | null;
}

export interface UndoStep extends CompiledCall {
  /** Sent twice it does no more than once: it changes nothing, or the server is told which undoing it belongs to. */
  isRepeatable: boolean;
}

export interface Way {
  when: Expression | null;
  steps: UndoStep[];
  remains: Expression | null;
}

export type PassedKey =
  { kind: 'argument'; name: string } | { kind: 'header'; name: string } | { kind: 'meta'; name: string };

export interface ToolPromises {
  identity: string;
  tool: string;
  isSafe: boolean;
  key: PassedKey | null;
  /** Empty: nothing is read before the effect. */
  before: CompiledReads['many'];
  /** Names in `before` whose failure no expression looks at: the effect is not sent where one of them failed. */
  beforeMustSucceed: string[];
  precondition: (Condition & { reason: string }) | null;
  refused: Expression | null;
  /** JSON-RPC's invalid params is taken at its word: that the tool did not run. Not where it may come later and can be asked. */
  paramsAreJudgedFirst: boolean;
  lookup: (Condition & { notApplied: Expression | null; result: CompiledCall['args'] | null }) | null;
  verify: Verification | null;
  rollback: { reads: CompiledReads; ways: Way[] } | null;
  verifyRollback: Verification | null;
  /** The tool's own words may repeat what is sensitive. */
  hidesResult: boolean;
}
