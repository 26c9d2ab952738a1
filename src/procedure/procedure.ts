import type { Json, JsonObject } from '../task/json.ts';
import type { Duration } from '../contract/duration.ts';
import type { ApprovalRule } from '../contract/define-action.ts';

interface Schema {
  readonly _zod: { readonly input: unknown; readonly output: unknown };
}
interface Contract {
  readonly name: string;
  readonly input: Schema;
  readonly output: Schema;
}
/** An action, or its contract alone. */
type Known = Contract | { readonly contract: Contract };
type ContractOf<T> = T extends { readonly contract: infer C } ? C : T;
/** The actions of `typeof actions`: an array, or an object or module that holds them. */
type ContractsOf<Actions> = ContractOf<
  Extract<Actions extends readonly (infer Entry)[] ? Entry : Actions[keyof Actions], Known>
>;
type NameOf<Actions> = Extract<ContractsOf<Actions>, Contract>['name'];
type Named<Actions, Name> = Extract<ContractsOf<Actions>, { readonly name: Name }>;

/** What an action takes, by its name. */
export type StepArguments<Actions, Name> =
  Named<Actions, Name> extends { readonly input: { readonly _zod: { readonly input: infer Input } } }
    ? Input
    : JsonObject;
/** What it answers. */
export type StepResult<Actions, Name> =
  Named<Actions, Name> extends { readonly output: { readonly _zod: { readonly output: infer Output } } }
    ? Output
    : Json;

/** Stands for a step's result of more than 256 KiB, which stays in the ledger. */
export interface ResultReference {
  kind: 'reference' | 'dropped';
  sha256: string;
  bytes: number;
}

/** What a person is asked, and by which policy (S4); as an action's `approval`. */
export interface ApprovalRequest extends ApprovalRule {
  /** What the approver is to see. */
  view: JsonObject;
}

/** What a procedure may do. Everything it does goes through here, since its code is run again over what is recorded. */
export interface ProcedureHandle<Actions> {
  readonly taskId: string;
  /**
   * Performs an action, once: under the key `taskId/stepId`, the n-th use of a stepId under `stepId#n` (S1.2). Rejects
   * with {@link StepFailed}. Several at once run beside each other (`Promise.all`).
   */
  step<Name extends NameOf<Actions>>(
    stepId: string,
    action: Name,
    args: StepArguments<Actions, Name>,
  ): Promise<StepResult<Actions, Name>>;
  /**
   * A decision that would come out differently if asked for again, a model's for one (S3.7): recorded before the code
   * goes on, asked for again only if it was lost before that, within its contract's `decision`. Beyond that it rejects
   * with {@link StepFailed}: `decision_budget_spent`.
   */
  decide<Name extends NameOf<Actions>>(
    decisionId: string,
    decision: Name,
    args: StepArguments<Actions, Name>,
  ): Promise<StepResult<Actions, Name>>;
  /** Asks a person. Rejects with {@link StepFailed}: `approval_rejected`, `approval_expired`. */
  approve(approvalId: string, request: ApprovalRequest): Promise<void>;
  /**
   * Another procedure of the same file as a part of this one: its steps are `childId/stepId`. When it fails, what it
   * committed is undone before this code hears of it.
   */
  child(childId: string, procedure: AnyProcedure, input: JsonObject): Promise<Json>;
  /** By durable timer. */
  sleep(duration: Duration): Promise<void>;
  /**
   * Runs the code from the top with another input: for loops without end, whose finished turns need not be kept. What
   * can be undone stays undoable. Never returns: `return p.restart(…)`.
   */
  restart(input: JsonObject): Promise<never>;
}

/** A procedure over whatever actions and input. */
interface AnyProcedure {
  readonly procedure: string;
  readonly run: (p: never, input: never) => Promise<unknown>;
}

/** A procedure's code under its name. */
export interface ProcedureCode<Actions = unknown, Input = JsonObject> {
  readonly procedure: string;
  readonly run: (p: ProcedureHandle<Actions>, input: Input) => Promise<unknown>;
}

/**
 * Names a procedure's code, for export from the file that the configuration's `procedures.code` names. `Actions` is
 * `typeof actions`: names, arguments and results of steps are checked against it.
 */
export function procedure<Actions, Input = JsonObject>(
  name: string,
  run: (p: ProcedureHandle<Actions>, input: Input) => Promise<unknown>,
): ProcedureCode<Actions, Input> {
  return Object.freeze({ procedure: name, run });
}
