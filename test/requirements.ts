/**
 * What Holdfast promises, rule by rule, each in one line, and which rules are not built yet. A test says which rules it
 * proves by naming them: `test('… [S2.4]')`, `[M1.3]`, `[case 12]`, `[mode 4]`. test/unit/requirements.test.ts holds the two together.
 */

import { FAILURE_MODES } from '../scripts/failure-modes.ts';

/** Rule id to what it says. `S` semantics, `M` the MCP face, `case` failures seen in the field, `mode` failure modes. */
export const RULES: Readonly<Record<string, string>> = {
  'S1.1': 'A JSON-RPC id names a message; it identifies and deduplicates nothing.',
  'S1.2': 'The idempotency key names the intent, 1 to 255 characters, compared byte for byte.',
  'S1.3': 'operationId is a hash of tenant, action and key, stable over attempts, processes and restarts.',
  'S1.4':
    'Arguments match by the fingerprint of their canonical JSON; what JSON can not keep exactly is refused with its path.',
  'S1.5':
    'The row is reserved or found before a workflow starts, so the same call always meets the same task.',
  'S1.6':
    'A key whose task ended with nothing sent may be called again, as the next ordinal; an ended task stays ended.',
  'S1.7': 'Without a key the effect is never retried automatically, and the caller is told.',
  S2: 'Row states move along one table; each transition has its guard and is durable.',
  'S2.1': 'Look first: another fingerprint is a conflict, a spent key is answered from the row.',
  'S2.2': 'The precondition is checked immediately before every execution; false refuses with no effect.',
  'S2.3':
    'Claim and intent are one transaction before the first byte; a lower claim is stale, an equal one busy.',
  'S2.4': 'Whenever an earlier claim exists, the target is asked before anything is sent again.',
  'S2.5':
    'Handlers get operation id, attempt, fence, signal, heartbeat and assertOwner; a declared notApplied releases the claim.',
  'S2.6':
    'The effect is verified by re-reading the target: polled by timer up to its deadline, undone on a mismatch.',
  'S2.7': 'Only the row’s own claim commits; a stale outcome changes no result and is kept.',
  'S2.8': 'A transactional action claims, acts and commits in one transaction of the ledger’s database.',
  'S2.9': 'Results are stored as canonical JSON and parsed anew for every reader.',
  'S2.10': 'Sensitive fields never reach ledger, journal, audit, log, metric, error or approval view.',
  'S2.11': 'Whoever crashes where, effects per operation stay at one.',
  'S2.12': 'The ledger’s key holds no run id; the engine’s attempt number is never a fence.',
  'S2.13':
    'A short safe or conditional step runs inline in the first workflow task; everything else is dispatched.',
  'S3.1':
    'State is a pure function of journaled events, each appended before what it announces; answers come from it alone.',
  'S3.2': 'After every await the reduced state is asked again before anything is done with what came back.',
  'S3.3':
    'Old event versions are upcast on reading; recorded histories and journals of every release replay.',
  'S3.4': 'One status at a time and one terminal one; cancelled never carries an applied or unknown effect.',
  'S3.5': 'What can not be known waits, alerted, for a person: applied, not applied or abandoned.',
  'S3.6': 'State and newest events cross continue-as-new; no message, approval or timer is lost over it.',
  'S3.7':
    'A non-deterministic decision is journaled before anything acts on it, and asked again only if lost before.',
  'S3.8':
    'No engine timeout is set; a task closed from outside is judged by its row, a lost attempt is an unknown outcome.',
  'S4.1': 'An approval is persisted state bound to one call and one cycle, never reused.',
  'S4.2': 'Decisions are approve, edit and reject; an edit is planned and judged anew.',
  'S4.3': 'The first decision applied wins; later, wrong or late ones change nothing and say so.',
  'S4.4': 'Approvals expire by durable timer and then deny, halt, remind or escalate.',
  'S4.5': 'The requester can not decide its own call; roles, quorum and standing rules come from policy.',
  'S4.6': 'An irreversible action needs a typed challenge, never over the channel that asked.',
  'S4.7': 'The approval view shows what will happen: arguments, precondition as read, rollback plan.',
  'S4.8':
    'Every message exists as a signal and where useful as an update; a bare Temporal client can send each.',
  S5: 'The table of failures: unsent is retried, unknown reconciled, rate limits obeyed, permanent ones final.',
  'S5.1': 'The contract alone says safe, conditional or unsafe; hints never ground a retry.',
  'S5.2': 'Retry state is durable and visible; an attempt lost by the infrastructure spends no retry.',
  'S5.3': 'Each wait has its own deadline; deadline_exceeded is final only with a known effect.',
  'S6.1': 'Every action names how it is undone: inBand, compensate, outOfBand, or none with a reason.',
  'S6.2':
    'A rollback is an operation of its own: retried, verified, audited; what can not finish goes to a person.',
  'S6.3':
    'A procedure that fails or is cancelled undoes its committed steps in reverse, out of cancel’s reach.',
  'S6.4': 'An action that can not be undone demands a challenge at commit time.',
  'S6.5': 'A failed verification alerts a person, from an outbox that a crash can not swallow.',
  'S6.6': 'Rollback is rehearsed: one command runs every crash point and plan and prints what happened.',
  'S7.1': 'interrupt pauses a task as an overlay over its status; resume returns to it.',
  'S7.2': 'While interrupted nothing begins; what is under way finishes and is recorded once.',
  'S7.3': 'What came back is judged by what is true now.',
  'S7.4':
    'cancel is recorded and acknowledged; before, during and after the effect it leads where the contract says.',
  'S7.5': 'The engine’s own cancellation means the same; a handler hears of it within a second.',
  'S8.1': 'A lease says who may work; a fence says who is too late; neither stands in for the other.',
  'S8.2': 'A lease per resource is granted first come first served, expires by timer, and raises the fence.',
  'S8.3': 'Stores accept a write only with the current fence; a stale writer changes nothing.',
  'S8.4':
    'A remote task is supervised by one control call at a time, under a lease that is extended before it.',
  'S8.5': 'A clock that steps back never shortens a lease; one clock decides.',
  S9: 'Alerts and unsearchable sends leave through an outbox committed with the state they announce.',
  'S10.1': 'The audit is append-only, hash-chained and outlives the engine; the database refuses changes.',
  'S10.2':
    'Audit entries ride in the transaction of the change they describe, and hashes survive the round trip.',
  'S10.3':
    'Transitions without a ledger change are flushed before a person is waited for and before the end.',
  'S10.4':
    'The audit answers who asked, approved, checked, sent, verified, undid, when and by which version; offline.',
  'M1.1':
    'tools/list publishes the schema the handler accepts; one broken tool does not take the others with it.',
  'M1.2': 'Authenticate, validate, plan, start or attach, and only then answer.',
  'M1.3':
    'The key comes as argument or _meta; same key and arguments replay, other arguments conflict by path.',
  'M1.4': 'An open keyless call with equal arguments of the same principal is met again.',
  'M1.5': 'Every non-safe result carries structured task facts; an unknown outcome says not to call again.',
  'M1.6': 'Numbers are exact or refused.',
  'M2.1': 'A client that declared Tasks gets a handle or the final result; nobody else ever gets a task.',
  'M2.2': 'tasks/get never hangs: without a worker it answers the last known state, after retention the row.',
  'M2.3': 'tasks/update answers outstanding input requests; unknown and answered keys are ignored.',
  'M2.4': 'tasks/cancel acknowledges intent, idempotently; a late one is without effect.',
  'M2.5': 'subscriptions/listen gives the caller’s own tasks as hints after a snapshot.',
  'M2.6': 'Foreign, expired and unknown task ids look the same, and knowing one gives nothing.',
  'M2.7': 'ttlMs never ends a running task’s readability.',
  'M3.1': 'Without Tasks a call blocks with progress, then hands over the task in words.',
  'M3.2': 'task_get, task_wait, task_cancel and task_answer serve clients without Tasks.',
  'M4.1': 'A request has an idle clock reset by progress and a maximum reset by nothing.',
  'M4.2':
    'Progress rises strictly, is rate limited, carries the caller’s token and never follows the response.',
  'M5.1': 'Each transport has one way to cancel a request, and a cancelled request gets no response.',
  'M5.2': 'One terminal state per request.',
  'M5.3': 'Cancelling a request abandons the wait, not the task.',
  'M5.4': 'Our own shutdown never cancels a task.',
  'M5.5':
    'As a client: streams are closed, cancels sent only where they mean something, late responses ignored.',
  'M6.1': 'Every SSE response is bounded in bytes and frames; a final response is never dropped.',
  'M6.2': 'First byte within a second, keepalives from then on, no buffering.',
  'M6.3': 'A client helper reconnects, restores its filter, refetches and deduplicates.',
  'M7.1':
    'OAuth resource server, static tokens or loopback; Host and Origin checked; everything scoped by tenant.',
  'M7.2': 'Limits with typed answers: body, nesting, key, calls and listens a principal.',
  'M7.3': 'The agent that asked can not approve over its own connection.',
  'M8.1': 'Any MCP server can be put behind the gateway by configuration; what is not configured is unsafe.',
  'M8.2': 'Upstream names stay callable, unique and stable within 64 characters.',
  'M8.3':
    'Cancel reaches the right upstream under its own id; broken upstreams are replaced and doubts reconciled.',
  'M8.4': 'An upstream that answers with a task is supervised durably.',
  'M8.5': 'Tool lists are frozen into each plan.',
  'case 1': 'A late failure after a commit does not run the committed step again.',
  'case 2': 'A reply lost after the effect is not re-sent but verified.',
  'case 3': 'A write tool without its key mapping is refused or marked never to retry, at startup.',
  'case 4': 'A start-to-close below the tool’s own timeout is refused; a late result is recorded as late.',
  'case 5': 'A retry policy on the workflow is refused; forced, the effect still happens once.',
  'case 6': 'An unrelated event dispatches nothing a second time.',
  'case 7': 'An expired claim on an applied effect leads to verification, not execution.',
  'case 8': 'A timeout says outcome unknown and which task to ask; the same call meets it.',
  'case 9': 'Same key, other arguments: a typed conflict naming the path, no result leaked.',
  'case 10': 'A caller whose start was answered into the void attaches when it repeats.',
  'case 11': 'Canonical JSON orders non-BMP keys as RFC 8785 says, in a second language too.',
  'case 12': 'No two of NaN, -0, BigInt, undefined, Date, Map and their like are equal by accident.',
  'case 13': 'Key order at any depth changes nothing; array order does.',
  'case 14': 'Large arguments, results and fan-outs are offloaded or refused; nothing gets silently stuck.',
  'case 15': 'Histories replay after restarts, cold caches, changed tool lists and SDK patches.',
  'case 16': 'Without an audit store writes are refused with a typed error; reads as configured.',
  'case 17': 'Approval pauses re-run nothing before them.',
  'case 18': 'Deny then approve: the first wins, the second is told and audited.',
  'case 19': 'A double click is one transition and one notification.',
  'case 20': 'Pending approvals survive a kill of everything; stale buttons work or say why not.',
  'case 21': 'An edit can not change the tool, add arguments or dodge a stricter rule.',
  'case 22': 'After an edit the original call is answered, not executed.',
  'case 23': 'The human’s wait is in no tool’s timeout.',
  'case 24': 'Expiry racing approval has one outcome, told alike to everyone.',
  'case 25': 'A standing rule covers only what its predicate matches.',
  'case 26': 'A running activity hears of its cancel within seconds; its outcome is unknown until verified.',
  'case 27': 'Compensations run in full, once each, out of cancel’s reach, also for unknown steps.',
  'case 28': 'Thirty days of polls and messages stay within the engine’s limits and lose nothing.',
  'case 29': 'A task is found after a restart by its owner, and by nobody else.',
  'case 30': 'A ttl never takes the arguments or the result of a running task.',
  'case 31': 'No progress after the response or with a token the client did not send.',
  'case 32': 'Streams survive proxies that buffer and cut.',
  'case 33': 'Cancels reach the right upstream with its own id while other requests run.',
  'case 34': 'A repeated cancel disturbs none under way; a paused worker’s write is refused.',
  'case 35': 'Replicas with skewed clocks neither double-poll nor steal leases.',
  ...Object.fromEntries(FAILURE_MODES.map(({ response }, index) => [`mode ${index + 1}`, response])),
};

/**
 * Rules without a test, and what they wait for. Taken off as soon as a test proves them: the gate insists on both.
 */
export const LATER: Readonly<Record<string, string>> = {};
