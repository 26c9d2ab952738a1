/** What contradicts itself within one contract, each with its fix. Handlers are looked at in implement-action.ts. */
import { askDefects } from './asked.ts';
import type { ActionContract, Defect } from './define-action.ts';
import { schemaDefects } from './json-schema.ts';
import { leaseMsMin } from './lease-plan.ts';
import { LIMITS } from './limits.ts';

interface Given {
  rollbackGiven: boolean;
  /** The tool's own timeout, where it has one. */
  toolMs: number | undefined;
}

export function contractDefects(contract: ActionContract, given: Given): Defect[] {
  return [
    ...rollbackDefects(contract, given.rollbackGiven),
    ...deadlineDefects(contract, given.toolMs),
    ...effectDefects(contract),
    ...leaseDefects(contract),
    ...schemaDefects(contract),
    ...askDefects(contract),
  ];
}

/** The defects whose condition holds. */
const those = (...checks: [boolean, string, string][]): Defect[] =>
  checks.flatMap(([isDefect, field, message]) => (isDefect ? [{ field, message }] : []));

function rollbackDefects({ effect, rollback, onCancel }: ActionContract, given: boolean): Defect[] {
  const undoes = rollback.kind === 'inBand' || rollback.kind === 'compensate';
  return those(
    [
      effect !== 'safe' && !given,
      'rollback',
      "say how the effect is undone: {kind: 'inBand' | 'compensate' | 'outOfBand'} or {kind: 'none', reason}",
    ],
    [
      effect === 'safe' && rollback.kind !== 'none',
      'rollback.kind',
      "a safe action has nothing to undo: leave rollback out, or declare the effect 'conditional' or 'unsafe'",
    ],
    [
      rollback.kind === 'none' && rollback.reason === undefined && effect !== 'safe',
      'rollback.reason',
      "rollback 'none' needs a reason: why can the effect not be undone?",
    ],
    [
      onCancel === 'rollback' && !undoes,
      'onCancel',
      `'rollback' needs rollback.kind 'inBand' or 'compensate', not '${rollback.kind}'; or write 'keep'`,
    ],
  );
}

function deadlineDefects(
  { deadlines, retry, transactional }: ActionContract,
  toolMs: number | undefined,
): Defect[] {
  const { attemptMs, verifyMs, runMs } = deadlines;
  const [transactionalMs, inlineMs] = [LIMITS.transactionalMsMax.value, LIMITS.inlineMsMax.value];
  return those(
    [
      runMs < attemptMs,
      'deadlines.run',
      `${runMs} ms is shorter than one attempt (${attemptMs} ms): lengthen it`,
    ],
    // Field case 4: the attempt would be ended while the tool is still at work.
    [
      toolMs !== undefined && toolMs > attemptMs,
      'deadlines.attempt',
      `${attemptMs} ms is shorter than the tool's own timeout of ${toolMs} ms: lengthen it to ${toolMs} ms or more`,
    ],
    [
      retry.maximumIntervalMs < retry.initialIntervalMs,
      'retry.maximumInterval',
      `${retry.maximumIntervalMs} ms is shorter than retry.initialInterval (${retry.initialIntervalMs} ms)`,
    ],
    [
      transactional && attemptMs > transactionalMs,
      'deadlines.attempt',
      `a transactional action holds the ledger's transaction: at most ${transactionalMs} ms (S2.8)`,
    ],
    [
      transactional && attemptMs + verifyMs > inlineMs,
      'deadlines.verify',
      `a transactional action is verified within its transaction: attempt plus verify at most ${inlineMs} ms`,
    ],
  );
}

function effectDefects({ effect, ledger, transactional, tasks }: ActionContract): Defect[] {
  return those(
    [
      tasks === 'required' && effect === 'safe',
      'tasks',
      'a safe action is answered with its result, never with a task: leave tasks out',
    ],
    [
      ledger === 'optional' && effect !== 'safe',
      'ledger',
      `'optional' is for safe actions; a ${effect} one never runs unrecorded`,
    ],
    [
      ledger === 'optional' && transactional,
      'ledger',
      'a transactional action lives in the ledger: leave ledger out',
    ],
    [
      transactional && effect === 'unsafe',
      'effect',
      "the ledger itself dedupes a transactional action: declare 'conditional'",
    ],
  );
}

function leaseDefects({ resource, leaseMs, deadlines }: ActionContract): Defect[] {
  const shortestMs = leaseMsMin(deadlines);
  return those(
    [leaseMs !== null && resource === undefined, 'lease', 'says how long, and no resource says what is held'],
    [
      leaseMs !== null && leaseMs < shortestMs,
      'lease',
      `${leaseMs} ms is shorter than one attempt in all (${shortestMs} ms), whose worker would outlive it: lengthen it`,
    ],
  );
}
