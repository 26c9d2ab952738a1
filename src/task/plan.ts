/**
 * The plan: everything one task depends on, decided once before it runs and frozen as plain JSON.
 *
 * The workflow interprets plans and never sees a contract, a schema or a tool list, so a deploy with other
 * thresholds can't change a running task (architecture.md, idea 1). Fields are persisted: add, never rename.
 */

/** Who asks. `tenant` scopes every row, task and audit entry. */
export interface Principal {
  tenant: string;
  subject: string;
  roles: string[];
}

/** What a repeat of the effect costs (S5.1): nothing; nothing because someone dedupes by operationId; a second effect. */
export type EffectClass = 'safe' | 'conditional' | 'unsafe';

/** How an effect is undone (S6.1). `none` always carries a reason. */
export type RollbackKind = 'inBand' | 'compensate' | 'outOfBand' | 'none';

/** Deadlines in milliseconds (S5.3). None of them is spent while a person is waited for. */
export interface PlanDeadlines {
  /** One attempt's connect and read time; the handler's signal aborts at its end. 1 to 86_400_000. */
  attemptMs: number;
  /** From the first `notYet` until verification ends in `unknown` (S2.6). 0 to 2_592_000_000. */
  verifyMs: number;
  /** From the task's start until no new execution begins. Never an engine timeout (S3.8). */
  runMs: number;
  /** How long after an attempt's deadline a request may still be on its way (S2.4). */
  settleMs: number;
  /** A worker silent for this long is taken for dead: heartbeat timeout and length of a claim alike. Default 5_000. */
  heartbeatMs: number;
  /** Business SLA: from the task's start, people's time included; alerts once, ends nothing. Absent: none. */
  slaMs?: number;
}

/** The business retry budget (S5). Attempts lost by the infrastructure never spend it (S5.2). */
export interface PlanRetry {
  /** Retries after the first attempt, 0 to 1000. */
  maximumRetries: number;
  initialIntervalMs: number;
  maximumIntervalMs: number;
}

/** How often a decision may be asked for (S3.7), frozen from its contract for these arguments. */
export interface PlanDecision {
  /** Asks at most, the first among them; 0 where even one would cost more than may be spent. */
  asksMax: number;
  /** From one ask to the next, at least. */
  intervalMs: number;
}

/** Who must decide before the action runs, frozen from the contract's policy for these arguments (S4). */
export interface PlanApproval {
  /** Any one of these may decide. Empty: anybody of the tenant. */
  roles: string[];
  /** Distinct approvers needed, 1 to 10. */
  quorum: number;
  /** S4.5: false unless policy says so. */
  requesterMayDecide: boolean;
  /** From its opening; none of the tool's deadlines is spent meanwhile. */
  expiresInMs: number;
  onExpiry: 'deny' | 'halt' | 'remind' | 'escalate';
  /** How long before each expiry people are alerted; 0 or absent: not at all. */
  warnBeforeMs?: number;
  /** Roles that may decide besides, once it escalated. */
  escalateTo: string[];
  /** S4.6: what the approver types back; null where none is asked for. */
  challenge: string | null;
  /** M7.3: whether the connection that asked may answer. Never with a challenge. */
  mayAnswerOverMcp: boolean;
}

/** What an approver changed (S4.2): the row keeps the request's fingerprint, this is the executed one. */
export interface PlanEdit {
  by: string;
  callId: string;
  fingerprint: { sent: string; input: string };
}

/** A standing rule that stood in for an approver (S4.5). */
export interface PlanStandingRule {
  id: string;
  /** Who made it. */
  by: string;
}

/** S8: what a task holds while it runs, frozen from its contract for these arguments. */
export interface PlanLease {
  /** The lease's workflow, and the resource's row among the ledger's fences: one for each tenant and resource. */
  id: string;
  /** As its contract names it, for people and handlers. */
  resource: string;
  /** From each grant; no attempt lasts longer. */
  leaseMs: number;
}

export interface Plan {
  v: 1;
  action: string;
  contractVersion: number;
  principal: Principal;
  /** S1.3. The idempotency key handlers pass to providers. */
  operationId: string;
  /** The caller's idempotency key, or a generated one when `keyed` is false (S1.7). */
  key: string;
  keyed: boolean;
  /** As declared by the contract. A keyless `conditional` call is planned with `autoRetry: false`. */
  effect: EffectClass;
  /** False: only what is proven unsent is sent again (S1.7, interfaces.md "Keyless"). Always true for `safe`. */
  autoRetry: boolean;
  /** True: claim, effect and commit are one transaction in the ledger's own database (S2.8). */
  transactional: boolean;
  /** SHA-256 fingerprints (S1.4) of the arguments as sent and of the validated input. */
  fingerprint: { sent: string; input: string };
  /** Which handlers exist, so that the workflow can decide without calling one. */
  handlers: {
    precondition: boolean;
    /** `conclusive`: a `not_applied` answer is final once the attempt's deadline plus settleMs has passed (S2.4). */
    lookup: 'none' | 'plain' | 'conclusive';
    verify: boolean;
    rollback: boolean;
  };
  rollback: { kind: RollbackKind; reason?: string };
  /** JSON pointers of fields that never reach ledger, journal, audit, log, metric or error (S2.10); `*` is any index or key. */
  sensitive: { input: string[]; output: string[] };
  deadlines: PlanDeadlines;
  retry: PlanRetry;
  /** What a cancel that meets a committed effect does (S7.4). */
  onCancel: 'keep' | 'rollback';
  /** What a cancel that meets a running attempt does: let it finish, or abort it and reconcile (S7.4). */
  cancelAttempt: 'finish' | 'abort';
  /** The first attempt may run as a local activity in the first workflow task (S2.13). */
  inline: boolean;
  /** False only for a `safe` action started while the ledger was away and whose contract allows that (field case 16). */
  recorded: boolean;
  /** Null or absent (plans of 0.1): nobody is asked. */
  approval?: PlanApproval | null;
  /** S4.5: policy asked for an approval, and these stood in for it; `approval` is null then. */
  standingRules?: PlanStandingRule[];
  /** Set for a procedure. `origin`: the task whose id its steps' keys are made of; a recovered run keeps it (S1.2). */
  procedure?: { origin?: string } | null;
  /** Set for a step of a procedure: the procedure's operation. The step's end is recorded with the procedure's. */
  stepOf?: string | null;
  /** Set for a step that is a decision (`p.decide`). */
  decision?: PlanDecision | null;
  /** Null or absent: nothing is held. */
  lease?: PlanLease | null;
  /** Set once an approver changed the arguments. */
  edited?: PlanEdit | null;
}
