/**
 * `defineAction`: the promise an action makes, checked when it is defined and frozen. No I/O and no handlers here.
 */
import type { z } from 'zod';
import type { EffectClass, PlanDeadlines, PlanRetry, RollbackKind } from '../task/plan.ts';
import type { Question } from './asked.ts';
import { contractDefects } from './contract-defects.ts';
import { definitionSchema, issuesOf } from './definition-schema.ts';
import type { Duration } from './duration.ts';
import { HoldfastError } from './error.ts';
import { sensitivePatterns } from './sensitive.ts';

/** Who must decide before the action runs (S4). */
export interface ApprovalRule {
  /** Any one of these roles may decide. Default: anybody of the tenant but the requester. */
  roles?: string[];
  /** Distinct approvers needed, 1 to 10. Default 1. */
  quorum?: number;
  /** S4.5: the requester may decide its own call. Default false. */
  requesterMayDecide?: boolean;
  /** How long the approval stays open, at most 365 d. Default 24 h; none of the action's deadlines runs meanwhile. */
  expiresIn?: Duration;
  /** S4.4: `deny` (default) ends the task, `halt` asks a person, `remind` alerts and keeps it open, `escalate` lets `escalateTo` decide too, once. */
  onExpiry?: 'deny' | 'halt' | 'remind' | 'escalate';
  escalateTo?: string[];
  /** People are alerted so long before each expiry; 0: not at all. Default: an hour, a quarter of a term below 4 h, nothing below 1 h or with `remind`. */
  warnBefore?: Duration;
  /** S4.6: what the approver types back: one line, at most 400 characters. An action whose rollback is `none` has one made from the call's facts by default. */
  challenge?: string;
  /** M7.3: may be answered over the MCP connection that asked. Default false, and never with a challenge. */
  mayAnswerOverMcp?: boolean;
}

export interface DeadlinesDefinition {
  /** One attempt's connect and read time, 1 ms to 24 h. Default 10 s (1 s when transactional). */
  attempt?: Duration;
  /** From the first `notYet` until verification ends in `unknown`, 0 to 30 d. Default 30 s (1 s when transactional). */
  verify?: Duration;
  /** From the task's start until no new execution begins, at least `attempt`, at most 365 d. Default 1 h. */
  run?: Duration;
  /** How long after an attempt's deadline its request may still be on its way (S2.4), 0 to 24 h. Default 1 min. */
  settle?: Duration;
  /** A worker silent for this long is taken for dead, 500 ms to 60 s. Default 5 s. */
  heartbeat?: Duration;
  /** Business SLA, 1 ms to 365 d: alerts once when the task, people's time included, is not over by then; ends nothing. Default none. */
  sla?: Duration;
  /** The tool's own timeout where it has one; longer than `attempt` is refused, since the attempt would end first. */
  tool?: Duration;
}

export interface RetryDefinition {
  /** Retries after the first attempt, 0 to 1000. Default 5. */
  maximumRetries?: number;
  /** 1 ms to 24 h. Default 1 s; doubles up to `maximumInterval`, with full jitter. */
  initialInterval?: Duration;
  /** At least `initialInterval`, at most 24 h. Default 1 min. */
  maximumInterval?: Duration;
}

/** S3.7: what asking for a decision may come to. Kept in the ledger: a crash, a retry and a restart all count. */
export interface DecisionDefinition<Input = unknown> {
  /** Asks at most, the first among them, 1 to 1000. Default 6. */
  asksMax?: number;
  /** From one ask to the next at least, 0 to 24 h. Default 1 s. */
  interval?: Duration;
  /** What all asks together may cost at most, in a unit of your own; needs `costOf`. Default unbounded. */
  costMax?: number;
  /** What one ask with these arguments costs at most, in the same unit. Pure and quick. */
  costOf?(input: Input): number;
}

/** What a user writes. Durations are `250ms`, `10s`, `5m`, `24h`, `7d` or milliseconds. */
export interface ActionDefinition<
  Input extends z.ZodObject,
  Output extends z.ZodType,
  Name extends string = string,
> {
  /** The tool's name: 1 to 64 of `A–Z a–z 0–9 _ -`. Persisted in every row. */
  name: Name;
  /** Grows when the meaning of the action changes; stored beside fingerprints. From 1. */
  version: number;
  description: string;
  /** Unknown arguments are refused unless the object is loose or has a catchall. Its values must be JSON after parsing. */
  input: Input;
  output: Output;
  /** S5.1: `safe` reads, `conditional` (someone dedupes by operationId), `unsafe` (nobody does). */
  effect: EffectClass;
  /** S6.1. `none` needs a reason; a safe action needs nothing. */
  rollback?: { kind: RollbackKind; reason?: string };
  /** Pure and quick. A falsy answer asks nobody. A promise, or anything else that is no rule, permits nothing (`invalid_contract`). */
  approval?(input: z.output<Input>): false | ApprovalRule;
  deadlines?: DeadlinesDefinition;
  retry?: RetryDefinition;
  /** The budget of each `p.decide` that this action is asked by; of no meaning elsewhere. */
  decision?: DecisionDefinition<z.output<Input>>;
  /** S7.4: what a cancel that meets a committed effect does. Default `keep`. */
  onCancel?: 'keep' | 'rollback';
  /** S7.4: what a cancel that meets a running attempt does. Default `finish`. */
  cancelAttempt?: 'finish' | 'abort';
  /** S2.6: why the action has no `verify` handler. */
  verify?: { none: string };
  /** S2.8: the effect lives in the ledger's own database. Default false. */
  transactional?: boolean;
  /** `optional` (safe actions only): may run, unrecorded, while the ledger is away (field case 16). Default `required`. */
  ledger?: 'required' | 'optional';
  /** M1.4: a keyless call meets an open one with equal arguments of the same principal. Default true. */
  attach?: boolean;
  /**
   * M5.3: what becomes of a keyless call's task when its caller cancels the request. `cancel`: it is asked to cancel once
   * nobody has waited for it for `abandonMs` (30 s). Default `continue`: the same call finds it again.
   */
  onAbandon?: 'continue' | 'cancel';
  /** S2.4: `conclusive` when a `not_applied` answer is final once attempt and settle have passed. Default `plain` where the handler exists. */
  lookup?: 'plain' | 'conclusive';
  /** S2.13: `false` keeps the step out of the workflow task. Default `auto`. */
  inline?: 'auto' | false;
  /** Questions to a person about fields that a call over MCP leaves out, one form after another, before anything starts. At most 5; no sensitive fields. */
  ask?: Question[];
  /**
   * S8: what one task at a time may work on, such as `printer-3` or `account/${id}`; null: nothing. Pure and quick; a
   * sensitive field comes as its keyed hash. 1 to 255 characters; one name is one resource for all of a tenant's actions.
   * Such a step never runs inline.
   */
  resource?(input: z.output<Input>): string | null;
  /** How long a task holds its resource from each grant, at most 3 d. Default, and at least, what one attempt may take in all (two attempt deadlines, verify, 10 s); the default has 10 s more. */
  lease?: Duration;
  /** M2.1: `required` where blocking makes no sense: over MCP only clients with the Tasks extension may call it, others get -32021. Default `optional`. */
  tasks?: 'optional' | 'required';
}

/** A checked definition with every default filled in. Frozen. */
export interface ActionContract<
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodType = z.ZodType,
  Name extends string = string,
> {
  readonly name: Name;
  readonly version: number;
  readonly description: string;
  readonly input: Input;
  readonly output: Output;
  readonly effect: EffectClass;
  readonly rollback: { readonly kind: RollbackKind; readonly reason?: string };
  approval?(input: z.output<Input>): false | ApprovalRule;
  readonly deadlines: Readonly<PlanDeadlines>;
  readonly retry: Readonly<PlanRetry>;
  readonly decision: {
    readonly asksMax: number;
    readonly intervalMs: number;
    /** Null: unbounded. */
    readonly costMax: number | null;
    costOf?(input: z.output<Input>): number;
  };
  readonly onCancel: 'keep' | 'rollback';
  readonly cancelAttempt: 'finish' | 'abort';
  /** Why there is no verify handler; null when there must be one. */
  readonly noVerify: string | null;
  readonly transactional: boolean;
  readonly ledger: 'required' | 'optional';
  readonly attach: boolean;
  readonly onAbandon: 'continue' | 'cancel';
  /** As declared; null when left to whether the handler exists. */
  readonly lookup: 'plain' | 'conclusive' | null;
  readonly inline: 'auto' | false;
  readonly ask: readonly Question[];
  readonly tasks: 'optional' | 'required';
  resource?(input: z.output<Input>): string | null;
  /** Null: as long as an attempt may take in all, and a margin. */
  readonly leaseMs: number | null;
  /** Set for another server's tool that takes a key of its own: the argument it is given in, which is no part of the input. */
  readonly keyArgument?: string;
  /** Set by `defineProcedure`: what runs is a procedure's code, and there are no handlers. */
  readonly isProcedure?: boolean;
  /** JSON pointer patterns (S2.10). */
  readonly sensitive: { readonly input: readonly string[]; readonly output: readonly string[] };
}

/**
 * Checks a definition and answers the contract. Throws `invalid_contract` with all defects found: the message of each
 * names the field, its bound and the fix (`details.issues`).
 */
export function defineAction<
  Input extends z.ZodObject,
  Output extends z.ZodType,
  const Name extends string = string,
>(definition: ActionDefinition<Input, Output, Name>): ActionContract<Input, Output, Name> {
  const name = typeof definition?.name === 'string' ? definition.name.slice(0, 64) : '(unnamed)';
  const parsed = definitionSchema.safeParse(definition);
  if (!parsed.success) throw contractError(name, issuesOf(parsed.error));
  const { deadlines, verify, rollback, approval, decision, resource, lease, ...rest } = parsed.data;
  const isSafe = rest.effect === 'safe';
  const contract: ActionContract<Input, Output, Name> = {
    ...rest,
    name: definition.name,
    // S1.4, field case 21: an argument nobody would look at is refused, not dropped.
    input: (definition.input._zod.def.catchall === undefined
      ? definition.input.strict()
      : definition.input) as Input,
    output: definition.output,
    rollback: Object.freeze(rollback ?? { kind: 'none' as const, reason: 'it changes nothing' }),
    ...(approval && { approval: approval as NonNullable<ActionContract<Input, Output>['approval']> }),
    ...(resource && { resource: resource as NonNullable<ActionContract<Input, Output>['resource']> }),
    leaseMs: lease ?? null,
    deadlines: Object.freeze(deadlinesOf(deadlines, rest.transactional)),
    retry: Object.freeze(rest.retry),
    decision: Object.freeze(decision) as ActionContract<Input, Output>['decision'],
    ask: Object.freeze(rest.ask),
    noVerify: verify?.none ?? (isSafe ? 'it changes nothing' : null),
    sensitive: Object.freeze({
      input: Object.freeze(sensitivePatterns(definition.input, 'input')),
      output: Object.freeze(sensitivePatterns(definition.output, 'output')),
    }),
  };
  const defects = contractDefects(contract, {
    rollbackGiven: rollback !== undefined,
    toolMs: deadlines.tool,
  });
  if (defects.length > 0) throw contractError(name, defects);
  return Object.freeze(contract);
}

function deadlinesOf(
  given: z.output<typeof definitionSchema>['deadlines'],
  transactional: boolean,
): PlanDeadlines {
  return {
    attemptMs: given.attempt ?? (transactional ? 1_000 : 10_000),
    verifyMs: given.verify ?? (transactional ? 1_000 : 30_000),
    runMs: given.run ?? Math.max(3_600_000, given.attempt ?? 0),
    settleMs: given.settle ?? 60_000,
    heartbeatMs: given.heartbeat ?? 5_000,
    ...(given.sla !== undefined && { slaMs: given.sla }),
  };
}

/** One thing wrong with a contract: where, and what to do. */
export interface Defect {
  field: string;
  message: string;
}

export function contractError(name: string, defects: readonly Defect[]): HoldfastError {
  const list = defects.map(({ field, message }) => `${field}: ${message}`).join('; ');
  return new HoldfastError('invalid_contract', `Action ${name}: ${list}`, {
    details: { action: name, issues: defects.map((defect) => ({ ...defect })) },
  });
}
