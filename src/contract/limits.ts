/**
 * Every limit on what a caller or a contract may hand in, once. docs/limits.md is generated from this table; code takes
 * its numbers from here, so that none is stated twice.
 */

import { PROCEDURE_LIMITS } from '../task/procedure-limits.ts';
import { UPSTREAM_LIMITS } from './upstream-limits.ts';

interface Limit {
  value: number;
  unit: string;
  /** What is bounded. */
  what: string;
  why: string;
  /** What happens beyond it: an error code of docs/errors.md, or in words. */
  beyond: string;
}

const DAY_MS = 86_400_000;

export const LIMITS = {
  procedureItemsMax: {
    value: PROCEDURE_LIMITS.itemsMax,
    unit: 'steps, sleeps and children',
    what: 'What a procedure asks for until it restarts',
    why: 'Its code is run again over all of it when its run continues as new.',
    beyond:
      'the procedure fails with `procedure_too_long` and is rolled back; `p.restart` begins a new count',
  },
  procedureCarriedBytesMax: {
    value: PROCEDURE_LIMITS.carriedBytesMax,
    unit: 'bytes of JSON',
    what: 'Arguments, results and plans of a procedure whose run continues as new',
    why: 'They cross it in one payload, and Temporal refuses payloads above 2 MB.',
    beyond:
      'its history grows on, up to 36 MiB with what undoing it will write; then the next step is refused before it begins (`procedure_too_large`), and the procedure is rolled back unless its code catches that. `p.restart` begins anew',
  },
  procedureHandedBytesMax: {
    value: PROCEDURE_LIMITS.handedBytesMax,
    unit: 'bytes of JSON in UTF-8',
    what: 'What a procedure’s code hands over in one piece: a step’s arguments, an approval’s view, what it restarts with or returns',
    why: 'Temporal refuses payloads above 2 MB, and the procedure would stand still.',
    beyond:
      '`payload_too_large`: the call rejects before anything is done, and code that does not catch that fails; a result that large fails the procedure',
  },
  procedureBytesAtOnceMax: {
    value: PROCEDURE_LIMITS.bytesAtOnceMax,
    unit: 'bytes of JSON in UTF-8',
    what: 'Requests that a run hands to Temporal at once, such as the arguments of steps begun together; and all that crosses continue-as-new beside its journal',
    why: 'Temporal refuses messages above 4 MB and payloads above 2 MB.',
    beyond:
      'the rest waits a moment, in the order it was asked for; a run that can’t continue as new goes on',
  },
  stepIdLengthMax: {
    value: PROCEDURE_LIMITS.stepIdLengthMax,
    unit: 'characters of `A-Z a-z 0-9 _ . -`',
    what: 'A stepId',
    why: 'It is part of the step’s key and of its approvals’ names.',
    beyond: 'the step is refused; the procedure fails unless its code catches that',
  },
  stepNameLengthMax: {
    value: PROCEDURE_LIMITS.stepNameLengthMax,
    unit: 'characters',
    what: 'A stepId with those of the children around it (`child/step`)',
    why: 'The whole name is part of the step’s key.',
    beyond: 'as `stepIdLengthMax`',
  },
  argumentBytesMax: {
    value: 1_048_576,
    unit: 'bytes',
    what: 'Arguments of one call, as canonical JSON in UTF-8',
    why: 'Temporal refuses payloads above 2 MB and a task that holds one looks stuck instead of failed.',
    beyond: '`payload_too_large`, before anything starts',
  },
  resultInlineBytesMax: {
    value: 262_144,
    unit: 'bytes',
    what: 'A result kept in the workflow’s history',
    why: 'A history holds many results; its size, not its length, is what the engine ends it for.',
    beyond: 'stored in the ledger’s `payload` table, by reference and hash',
  },
  resultStoredBytesMax: {
    value: 33_554_432,
    unit: 'bytes',
    what: 'A result kept at all',
    why: 'A row must fit into memory several times over.',
    beyond: 'the commit stands; the task completes with the result’s hash and size only',
  },
  nestingDepthMax: {
    value: 100,
    unit: 'levels',
    what: 'Arrays and objects inside one another, in arguments and results',
    why: 'Every reader walks the value; a bound keeps a hostile one from exhausting a stack.',
    beyond: '`invalid_arguments` with the path',
  },
  keyLengthMax: {
    value: 255,
    unit: 'characters (Unicode code points)',
    what: 'An idempotency key',
    why: 'It is indexed, printed and passed on.',
    beyond: '`invalid_key`',
  },
  identityLengthMax: {
    value: 255,
    unit: 'characters (Unicode code points)',
    what: 'Tenant, subject and each role of a principal',
    why: 'They are indexed and printed.',
    beyond: '`invalid_arguments`',
  },
  rolesMax: {
    value: 100,
    unit: 'roles',
    what: 'Roles of one principal',
    why: 'They are frozen into every plan.',
    beyond: '`invalid_arguments`',
  },
  questionsMax: {
    value: 5,
    unit: 'questions',
    what: 'Questions of a contract (`ask`)',
    why: 'Each is a round trip of the same call; clients follow no more than ten.',
    beyond: '`invalid_contract`',
  },
  toldPathMax: {
    value: 500,
    unit: 'characters',
    what: 'A JSON pointer named in an error',
    why: 'Keys may be as long as the arguments: twenty pointers through such a key are many times what was sent.',
    beyond: 'it is cut',
  },
  issuesMax: {
    value: 20,
    unit: 'entries',
    what: 'Issues or differing paths named in one error',
    why: 'An error must stay readable and small.',
    beyond: 'the first ones are named',
  },
  failureMessageLengthMax: {
    value: 2_000,
    unit: 'characters',
    what: 'The message of a recorded failure',
    why: 'Failures are kept in histories and audits.',
    beyond: 'cut, ending in `…`',
  },
  failureDetailsBytesMax: {
    value: 16_384,
    unit: 'bytes',
    what: 'The details of a recorded failure, as canonical JSON in UTF-8',
    why: 'An answer too large for the engine is no answer: the attempt would count as lost, and be made again.',
    beyond: 'left out; code and message stay',
  },
  toolNameLengthMax: {
    value: 64,
    unit: 'characters of A–Z, a–z, 0–9, `_`, `-`',
    what: 'The name of an action, which is its tool name',
    why: 'Model providers refuse longer or other names.',
    beyond: '`invalid_contract`',
  },
  descriptionLengthMax: {
    value: 4_096,
    unit: 'characters',
    what: 'The description of an action',
    why: 'Every model that lists the tools reads it.',
    beyond: '`invalid_contract`',
  },
  supersededMs: {
    value: 3_600_000,
    unit: 'ms',
    what: 'How long a keyless call is answered by an equal one of the same principal that an approver edited',
    why: 'An agent that finds other arguments executed tends to make its call again within the same run.',
    beyond: 'the call is a new one, and a person is asked',
  },
  standingRulesMax: {
    value: 100,
    unit: 'rules',
    what: 'Standing rules of one action and tenant that stand at one time',
    why: 'Each is judged whenever a call of the action is planned that policy asks a person about.',
    beyond: '`invalid_standing_rule`',
  },
  comparisonsMax: {
    value: 16,
    unit: 'comparisons',
    what: 'Comparisons of one standing rule (1 at least)',
    why: 'A person must be able to read what they allow.',
    beyond: '`invalid_standing_rule`',
  },
  comparedValuesMax: {
    value: 32,
    unit: 'values',
    what: 'Values of one `in` comparison (1 at least)',
    why: 'A person must be able to read what they allow.',
    beyond: '`invalid_standing_rule`',
  },
  comparedTextLengthMax: {
    value: 255,
    unit: 'characters',
    what: 'A pointer or text that a standing rule compares, and the reason it was made or revoked for',
    why: 'It is stored, printed and audited.',
    beyond: '`invalid_standing_rule`',
  },
  standingRuleMsMax: {
    value: 365 * DAY_MS,
    unit: 'ms',
    what: 'How long a standing rule stands (1 ms at least, 30 days by default)',
    why: 'What nobody looks at again should end.',
    beyond: '`invalid_standing_rule`',
  },
  actionsMax: {
    value: 1_000,
    unit: 'actions',
    what: 'Actions of one configuration',
    why: 'Tool lists are sent whole.',
    beyond: '`invalid_configuration`',
  },
  attemptDeadlineMsMax: {
    value: DAY_MS,
    unit: 'ms',
    what: '`deadlines.attempt` (1 ms at least)',
    why: 'An attempt holds a worker slot and a claim.',
    beyond: '`invalid_contract`',
  },
  verifyDeadlineMsMax: {
    value: 30 * DAY_MS,
    unit: 'ms',
    what: '`deadlines.verify` (0 at least)',
    why: 'Verification polls by timer; after a month a person should look.',
    beyond: '`invalid_contract`',
  },
  runDeadlineMsMax: {
    value: 365 * DAY_MS,
    unit: 'ms',
    what: '`deadlines.run` (at least `deadlines.attempt`)',
    why: 'A task nobody waits for any more should end.',
    beyond: '`invalid_contract`',
  },
  settleMsMax: {
    value: DAY_MS,
    unit: 'ms',
    what: '`deadlines.settle` (0 at least)',
    why: 'No request is on its way for longer.',
    beyond: '`invalid_contract`',
  },
  heartbeatMsMax: {
    value: 60_000,
    unit: 'ms',
    what: '`deadlines.heartbeat` (500 ms at least)',
    why: 'A dead worker’s claim lasts as long, and nobody else may act meanwhile.',
    beyond: '`invalid_contract`',
  },
  retriesMax: {
    value: 1_000,
    unit: 'retries',
    what: '`retry.maximumRetries`',
    why: 'Each is journaled.',
    beyond: '`invalid_contract`',
  },
  retryIntervalMsMax: {
    value: DAY_MS,
    unit: 'ms',
    what: '`retry.initialInterval` and `retry.maximumInterval` (1 ms at least), and a `Retry-After` that is obeyed',
    why: 'A wait that long is a matter for a person.',
    beyond: '`invalid_contract`; a longer `Retry-After` is cut to it',
  },
  decisionAsksMax: {
    value: 1_000,
    unit: 'asks',
    what: '`decision.asksMax` (1 at least, 6 by default): how often one decision of a procedure is asked for',
    why: 'Each ask may cost money, and a worker that dies of the answer would ask for ever.',
    beyond: '`invalid_contract`; a decision whose asks are spent fails with `decision_budget_spent`',
  },
  decisionIntervalMsMax: {
    value: DAY_MS,
    unit: 'ms',
    what: '`decision.interval` (0 at least, 1 s by default): from one ask of a decision to the next',
    why: 'A wait that long is a matter for a person.',
    beyond: '`invalid_contract`; the next ask waits',
  },
  inlineMsMax: {
    value: 2_000,
    unit: 'ms',
    what: 'Attempt plus verify deadline of a step that runs inline (S2.13)',
    why: 'It runs inside a workflow task, which the engine bounds.',
    beyond: 'the step is dispatched as an activity instead',
  },
  slaMsMax: {
    value: 365 * DAY_MS,
    unit: 'ms',
    what: '`deadlines.sla` (1 ms at least)',
    why: 'It runs beside the task, which may wait for people as long.',
    beyond: '`invalid_contract`',
  },
  resourceLengthMax: {
    value: 255,
    unit: 'characters',
    what: 'The name of a resource that a task holds (S8)',
    why: 'It is shown to people and travels with each grant.',
    beyond: '`invalid_contract`, when the call is planned',
  },
  leaseMsMax: {
    value: 3 * DAY_MS,
    unit: 'ms',
    what: '`lease` (at least what one attempt may take in all)',
    why: 'A holder that died keeps everybody else waiting as long.',
    beyond: '`invalid_contract`',
  },
  alertAttemptsMax: {
    value: 50,
    unit: 'tries',
    what: 'Deliveries of one alert, the waits between them doubling from 1 s to an hour: about 28 hours in all',
    why: 'A sink that refuses for a day needs a person, and the others must not wait behind it.',
    beyond: 'a dead letter, kept until `holdfast alerts retry`',
  },
  ...UPSTREAM_LIMITS,
  transactionalMsMax: {
    value: 1_000,
    unit: 'ms',
    what: 'Attempt deadline of a transactional action (S2.8)',
    why: 'It holds the ledger’s transaction, on SQLite its only writer.',
    beyond: '`invalid_contract`',
  },
  remoteLeaseMs: {
    value: 120_000,
    unit: 'milliseconds',
    what: 'A claim on one control call about another server’s task (S8.4)',
    why: 'So long a call of a dead worker keeps the others away. It is renewed every third and never ends a call.',
    beyond: 'another worker may claim; what the first still writes is `fence_stale`',
  },
  remoteCallMs: {
    value: 900_000,
    unit: 'milliseconds',
    what: 'One control call about another server’s task',
    why: 'A call without an end would keep its place, and its task unwatched.',
    beyond: 'the call is aborted and counts as a failure; the remote task is not touched',
  },
  remoteDrainMs: {
    value: 10_000,
    unit: 'milliseconds',
    what: 'The wait for a control call that was aborted',
    why: 'A server that does not react must not hold up the shutdown.',
    beyond:
      'it is left behind: it keeps its place until it settles, and its task is not called about again from there',
  },
  remoteCallsMax: {
    value: 20,
    unit: 'calls',
    what: 'Control calls of one worker at once, left-behind ones included',
    why: 'Each holds a connection.',
    beyond: 'further calls wait their turn',
  },
  remotePollMsMin: {
    value: 1_000,
    unit: 'milliseconds',
    what: 'Between two polls of one remote task, whatever the server says',
    why: 'A server that says 0 would be polled without a pause.',
    beyond: 'polled at this interval',
  },
  remotePollMsMax: {
    value: 300_000,
    unit: 'milliseconds',
    what: 'Between two polls of one remote task, unless the server asks for later by Retry-After',
    why: 'A server that says a year would never be heard of again.',
    beyond: 'polled at this interval',
  },
  remoteFailuresMax: {
    value: 10,
    unit: 'failures in a row',
    what: 'Control calls about one remote task that fail before a person is alerted',
    why: 'A server that stays away is no end of its task.',
    beyond: 'alert `remote_unreachable`, once; it is asked on',
  },
  remoteCancelMs: {
    value: 600_000,
    unit: 'milliseconds',
    what: 'From the first wish to cancel a remote task until its server has taken the cancel',
    why: 'A server that answers, and takes no cancel, works on for somebody who no longer wants it.',
    beyond: 'alert `remote_cancel_late`, once; it is asked on',
  },
  remoteRequestsCharsMax: {
    value: 65_536,
    unit: 'characters of JSON',
    what: 'What a remote task asks a person for',
    why: 'It crosses histories and continue-as-new.',
    beyond: 'it is not shown: the status says so, and the remote’s own channel must be used',
  },
} as const satisfies Record<string, Limit>;
