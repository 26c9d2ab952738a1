/**
 * The one error type and its table of codes (docs/errors.md is generated from it).
 *
 * A `HoldfastError` is an answer to a caller: it names the thing, the bound and what to do, and never holds a secret,
 * a stored value or a stack. Programmer errors are assertions, not HoldfastErrors.
 */
import type { JsonObject } from '../task/json.ts';

interface ErrorSpec {
  /** What happened, in one sentence. */
  meaning: string;
  /** The same call may succeed later without being changed. */
  retryable: boolean;
  /** What the caller can do. */
  action: string;
}

/** Every code, once. Codes are persisted and public: add, never rename. */
export const ERROR_CODES = {
  invalid_arguments: {
    meaning: 'The arguments do not fit the contract, or hold a value that JSON can not keep exactly.',
    retryable: false,
    action: 'Correct the fields named in `details.issues` and call again.',
  },
  input_declined: {
    meaning:
      'A person was asked for arguments the call left out, and did not give them. Nothing was started.',
    retryable: false,
    action: 'Call again with the arguments, or leave it.',
  },
  payload_too_large: {
    meaning: 'The arguments are larger than 1 MiB as canonical JSON. Nothing was started.',
    retryable: false,
    action: 'Store the content elsewhere and pass a reference.',
  },
  unknown_action: {
    meaning: 'No action of that name is configured here.',
    retryable: false,
    action: 'List the tools; check the spelling and the configuration of the worker.',
  },
  invalid_key: {
    meaning: 'The idempotency key is not a string of 1 to 255 characters.',
    retryable: false,
    action: 'Send a key that names the intent, for example an order id.',
  },
  idempotency_conflict: {
    meaning: 'The key was used before with other arguments (S2.1).',
    retryable: false,
    action:
      'Use a new key for a new intent, or send the first arguments again. `details.paths` names what differs.',
  },
  operation_in_progress: {
    meaning: 'Another open task owns this operation.',
    retryable: true,
    action: 'Ask for the task named in `details.taskId`.',
  },
  operation_rolled_back: {
    meaning: 'The operation of this key was carried out and undone; the key is spent.',
    retryable: false,
    action: 'Use a new key to do it again.',
  },
  operation_abandoned: {
    meaning: 'A person gave this operation up with its effect unknown; the key is spent.',
    retryable: false,
    action: 'Look at the target, then use a new key if it is to be done.',
  },
  precondition_failed: {
    meaning: 'The precondition did not hold immediately before execution. Nothing was sent.',
    retryable: true,
    action: 'Change the state it names, or call later; the same key may be used again.',
  },
  decision_budget_spent: {
    meaning:
      'A decision (`p.decide`) was asked for as often as its contract’s budget allows, and no answer is on record.',
    retryable: false,
    action:
      'Find out why answers are lost; raise `decision` in its contract, or catch this in the procedure.',
  },
  verify_failed: {
    meaning: 'The effect was not as promised when it was read back.',
    retryable: false,
    action: 'Read the task: it says what was rolled back and what remains.',
  },
  outcome_unknown: {
    meaning: 'It is not known whether the effect took place: not done, not failed.',
    retryable: false,
    action: 'Do not call again. Ask for the task; a person may have to resolve it.',
  },
  attempt_failed: {
    meaning: 'The target could not be reached or refused for now; nothing was applied.',
    retryable: true,
    action: 'Holdfast retries within the contract’s budget.',
  },
  rate_limited: {
    meaning: 'The target asked to be called later; nothing was applied.',
    retryable: true,
    action: 'Holdfast waits as long as it was told.',
  },
  permanent_failure: {
    meaning: 'The target refused for good; nothing was applied.',
    retryable: false,
    action: 'Correct the request; a new key is needed.',
  },
  retries_exhausted: {
    meaning: 'Every retry of the contract’s budget failed before anything was applied.',
    retryable: true,
    action: 'Call again with the same key when the target is well.',
  },
  deadline_exceeded: {
    meaning: 'The run deadline passed before the effect could be brought about.',
    retryable: true,
    action: 'Call again with the same key.',
  },
  cancelled: {
    meaning: 'The task was cancelled before anything was applied, or its effect was undone.',
    retryable: true,
    action: 'None needed.',
  },
  rollback_failed: {
    meaning: 'The effect could not be undone; a person is alerted.',
    retryable: false,
    action: 'Undo it by hand, then resolve the task.',
  },
  approval_required: {
    meaning:
      'Policy asks for a person’s approval first, which can not be collected here. Nothing was started.',
    retryable: false,
    action: 'Call with arguments below the policy’s threshold, or let a person act directly.',
  },
  approval_not_open: {
    meaning: 'No approval of this task is open.',
    retryable: true,
    action: 'Read the task; where its approval is still being prepared, decide again in a moment.',
  },
  approval_rejected: {
    meaning: 'A person rejected the call. Nothing was sent.',
    retryable: false,
    action: 'Ask the person who rejected it; the same key may be called again.',
  },
  approval_expired: {
    meaning: 'Nobody decided in time. Nothing was sent.',
    retryable: true,
    action: 'Call again with the same key; a new approval opens.',
  },
  invalid_standing_rule: {
    meaning: 'The standing rule is none: its predicate, term or number is not allowed. Nothing was stored.',
    retryable: false,
    action: 'Correct the fields named in `details.issues`.',
  },
  standing_rule_not_found: {
    meaning: 'No standing rule of that id that this principal may see.',
    retryable: false,
    action: 'List them (`holdfast rules --all`); check the id and the tenant.',
  },
  task_not_found: {
    meaning: 'No task of that id, or begun under that key so far, that this principal may see.',
    retryable: false,
    action:
      'Check the id, or tool and key, and the tenant. Asked for by key: a call may still be on its way.',
  },
  too_many_listens: {
    meaning: 'As many listens are open for this principal in this gateway as may be.',
    retryable: true,
    action: 'End one of them, or name more tasks in one listen.',
  },
  task_not_in_attention: {
    meaning: 'Only a task in `needs_attention` can be resolved.',
    retryable: false,
    action: 'Read the task; it may have ended or be at work.',
  },
  invalid_resolution: {
    meaning:
      'The resolution is not one of applied (with a result), not_applied, abandoned; names no step where several wait; or is contradicted by what the attempt reported.',
    retryable: false,
    action: 'See `details.issues`.',
  },
  ledger_unavailable: {
    meaning: 'The ledger can not be read or written, so nothing that changes the world may begin.',
    retryable: true,
    action: 'See `holdfast doctor`; call again when it is back.',
  },
  ledger_unsuitable: {
    meaning:
      'The store would not outlive the process, is a PostgreSQL older than 15, or has another schema version.',
    retryable: false,
    action: 'Use `sqlite:FILE` on a local disk or PostgreSQL; run `holdfast migrate`.',
  },
  engine_unavailable: {
    meaning:
      'Temporal can not be reached; whether the task was started is not known, but the key makes a repeat safe.',
    retryable: true,
    action: 'Call again with the same key.',
  },
  upstream_unavailable: {
    meaning: 'Another MCP server that tools come from does not answer.',
    retryable: true,
    action: 'See `holdfast upstream check`; its running tasks go on when it is back.',
  },
  engine_unprepared: {
    meaning:
      'The Temporal namespace lacks search attributes that tasks are found by; every task would stand still.',
    retryable: false,
    action: 'Run `holdfast migrate`, or register the named attributes where the cluster is administered.',
  },
  audit_broken: {
    meaning: 'The audit chain does not verify.',
    retryable: false,
    action: 'Keep the database as it is; `details` names the task and the first entry that fails.',
  },
  invalid_configuration: {
    meaning: 'A configuration value is missing or wrong.',
    retryable: false,
    action: 'Set the value that `details` names, in the shape it gives.',
  },
  invalid_contract: {
    meaning: 'An action’s contract contradicts itself or its handlers.',
    retryable: false,
    action: 'Change what the message names.',
  },
  encryption_key_required: {
    meaning: 'A contract has sensitive fields and HOLDFAST_ENCRYPTION_KEY is not set.',
    retryable: false,
    action: 'Set it to 32 random bytes in base64 (`openssl rand -base64 32`).',
  },
  payload_undecryptable: {
    meaning: 'A stored payload can not be decrypted with any configured key.',
    retryable: false,
    action: 'Add the key it was written with to HOLDFAST_ENCRYPTION_KEY, after the newest.',
  },
  unauthorized: {
    meaning: 'The bearer token is missing, or none that is taken here.',
    retryable: false,
    action: 'Send `Authorization: Bearer …`; with OAuth, `WWW-Authenticate` says where a token is had.',
  },
  forbidden: {
    meaning: 'The bearer token is genuine and lacks a scope or a claim that is needed here.',
    retryable: false,
    action: 'Have the scope or claim that `details` names put into the token by its issuer.',
  },
  auth_unavailable: {
    meaning: 'The keys that tokens are verified with can not be fetched, so nobody can be told from anybody.',
    retryable: true,
    action: 'Call again after `Retry-After`; whoever runs the gateway finds the cause in its log.',
  },
  response_overflow: {
    meaning:
      'The responses that wait for one reader of a stream exceed its bounds. None of them was dropped; the connection was cut instead of taking one more.',
    retryable: true,
    action: 'Read faster or call less in one batch; call again with the same key.',
  },
  session_not_found: {
    meaning:
      'The MCP session has ended, or was never one of this caller at this gateway. Tasks are not affected.',
    retryable: true,
    action: 'Send `initialize` without a session id, then call again; with a key, the same one.',
  },
  too_many_calls: {
    meaning:
      'This principal makes more calls, or has more open, than one gateway allows. Nothing was started.',
    retryable: true,
    action: 'Wait for `details.retryAfterMs`, then send the same call again, with the same key.',
  },
  embedded_unavailable: {
    meaning: 'No Temporal binary could be found or fetched, or another process uses the state directory.',
    retryable: false,
    action: 'Follow the message; TEMPORAL_CLI_PATH names a binary directly.',
  },
  engine_closed: {
    meaning:
      'The task was closed in the engine, past Holdfast (an operator terminated it, or its history was lost). Nothing stands.',
    retryable: true,
    action: 'Call again, with the same key where `effect` is `none`.',
  },
  internal_error: {
    meaning: 'A defect in Holdfast. What was sent is on record in the ledger.',
    retryable: false,
    action: 'Ask for the task; report the correlation id.',
  },
} as const satisfies Record<string, ErrorSpec>;

export type ErrorCode = keyof typeof ERROR_CODES;

/** The only error Holdfast throws at a caller. `details` is plain JSON and safe to show. */
export class HoldfastError extends Error {
  readonly code: ErrorCode;
  readonly details: JsonObject;
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, options: { details?: JsonObject; cause?: unknown } = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.name = 'HoldfastError';
    this.code = code;
    this.details = options.details ?? {};
    this.retryable = ERROR_CODES[code].retryable;
  }

  /** What a caller sees: `{code, message, details}`. */
  toJSON(): { code: ErrorCode; message: string; details: JsonObject } {
    return { code: this.code, message: this.message, details: this.details };
  }
}
