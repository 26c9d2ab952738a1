/** Each class of failure (S5), thrown around the user's own `execute`. */
import { once as waitFor } from 'node:events';
import type { ActionContract } from '../../../contract/define-action.ts';
import { ActionFailure, unknown } from '../../../contract/handlers.ts';
import { END } from '../endings.ts';
import { IN_ONE_TRANSACTION, first } from '../scenario.ts';
import type { Scenario, ScenarioGroup } from '../scenario.ts';
import type { Script } from '../scripts.ts';
import { afterDone, afterNothing, withRetry } from './doubt.ts';

const RETRY_AFTER_MS = 100;

/** What a connection that broke at the wrong moment looks like. */
const broken = (): Error => new Error('rehearsed: the connection was reset');

type Execute = NonNullable<Script['execute']>;

/** The first call only. */
const once =
  (fail: Execute): Execute =>
  (call) =>
    call.turn === 1 ? fail(call) : call.real();

const nothingSent: Execute = () => Promise.reject(ActionFailure.notSent('rehearsed: connection refused'));

/** The target does it, and its answer never arrives. */
const replyLost: Execute = async ({ real }) => {
  await real();
  throw broken();
};

const ATTEMPT_MS_MAX = 2_000;

function hasty(contract: ActionContract): ActionContract {
  const attemptMs = Math.min(contract.deadlines.attemptMs, ATTEMPT_MS_MAX);
  return { ...contract, deadlines: { ...contract.deadlines, attemptMs } };
}

/** The target does it, and then says nothing until the attempt's time is over. */
const silent: Execute = async ({ real, signal }) => {
  await real();
  if (!signal.aborted) await waitFor(signal, 'abort');
  throw broken();
};

const failures: Scenario[] = [
  {
    name: 'not sent once',
    rules: ['S5'],
    script: () => ({ execute: once(nothingSent) }),
    allowed: (terms) => (terms.retries > 0 ? [END.completed] : [END.refused]),
  },
  {
    name: 'not sent every time',
    rules: ['S5', 'S5.2'],
    script: () => ({ execute: nothingSent }),
    allowed: () => [END.refused],
  },
  {
    name: 'rate limited once',
    rules: ['S5'],
    script: () => ({
      execute: once(() => Promise.reject(ActionFailure.rateLimited('rehearsed: later', RETRY_AFTER_MS))),
    }),
    allowed: (terms) => (terms.retries > 0 ? [END.completed] : [END.refused]),
  },
  {
    name: 'refused for good',
    rules: ['S5'],
    script: () => ({ execute: () => Promise.reject(ActionFailure.permanent('rehearsed: refused')) }),
    allowed: () => [END.refused],
  },
  {
    name: 'connection lost before the effect',
    rules: ['S5', 'S2.4'],
    script: () => ({ execute: once(() => Promise.reject(broken())) }),
    allowed: (terms) => withRetry(terms, afterNothing(terms)),
  },
  {
    name: 'answer lost once',
    rules: ['S5', 'S2.4'],
    script: () => ({ execute: once(replyLost) }),
    allowed: (terms) => withRetry(terms, afterDone(terms)),
  },
  {
    name: 'no answer within the deadline',
    rules: ['S5.3', 'S2.4'],
    unless: ({ transactional }) => (transactional ? IN_ONE_TRANSACTION : null),
    contract: hasty,
    script: () => ({ execute: once(silent) }),
    allowed: (terms) => withRetry(terms, afterDone(terms)),
  },
  {
    name: 'answer lost every time',
    rules: ['S5', 'S3.5'],
    unless: ({ effect }) => (effect === 'safe' ? 'a safe action may be asked again at will' : null),
    script: () => ({ execute: replyLost }),
    allowed: ({ transactional, lookup }) =>
      transactional ? [END.refused] : [lookup === 'none' ? END.person : END.completed],
  },
  {
    name: 'answer lost, the look-up can’t tell',
    rules: ['S5.1', 'S2.4'],
    unless: ({ effect, lookup, transactional }) =>
      first(
        transactional && IN_ONE_TRANSACTION,
        effect === 'safe' && 'a safe action may be asked again at will',
        lookup === 'none' && 'there is no look-up: the scenarios before show it',
      ),
    script: () => ({
      execute: once(replyLost),
      lookup: () => Promise.resolve(unknown('rehearsed: the target can’t tell')),
    }),
    allowed: ({ effect, retries }) =>
      effect === 'conditional' && retries > 0 ? [END.completed] : [END.person],
  },
];

export const FAILURES: ScenarioGroup = { group: 'failure', scenarios: failures };
