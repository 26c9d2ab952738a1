/**
 * S2.4: an operation that an earlier attempt left in doubt, in every combination of effect class, key, lookup, what
 * really happened, purpose and time; on real ledgers, counted by the target.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  ActionFailure,
  applied,
  fails,
  holds,
  notApplied,
  unknown,
  verified,
} from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { OperationOutcome } from '../../src/task/outcome.ts';
import { Operation, STORES, honestLookup } from '../support/operation-rig.ts';
import type { Handlers, OperationSpec, TestStore } from '../support/operation-rig.ts';
import { Target } from '../support/operation-target.ts';

type Answer = 'honest' | 'unknown' | 'threw';

interface Case {
  effect: 'safe' | 'conditional' | 'unsafe';
  keyed: boolean;
  lookup: 'none' | 'plain' | 'conclusive';
  answer: Answer;
  /** Where the first attempt died: before or after the effect took place. */
  died: 'after_intent' | 'after_effect';
  purpose: 'execute' | 'settle';
  isSettled: boolean;
}

const BOOLEANS = [true, false] as const;
const CASES: Case[] = (['safe', 'conditional', 'unsafe'] as const).flatMap((effect) =>
  BOOLEANS.flatMap((keyed) =>
    (['none', 'plain', 'conclusive'] as const).flatMap((lookup) =>
      (lookup === 'none' ? (['honest'] as const) : (['honest', 'unknown', 'threw'] as const)).flatMap(
        (answer) =>
          (['after_intent', 'after_effect'] as const).flatMap((died) =>
            (['execute', 'settle'] as const).flatMap((purpose) =>
              BOOLEANS.map((isSettled) => ({ effect, keyed, lookup, answer, died, purpose, isSettled })),
            ),
          ),
      ),
    ),
  ),
);

function specOf(
  { effect, keyed, lookup, answer, isSettled }: Case,
  calls: { execute: number },
): OperationSpec {
  const target = new Target(effect !== 'unsafe');
  const lookups = {
    honest: honestLookup(target),
    unknown: () => Promise.resolve(unknown()),
    threw: () => Promise.reject(new Error('the lookup has no route')),
  };
  const handlers: Handlers = {
    execute({ amount }, { operationId }) {
      calls.execute += 1;
      return Promise.resolve(target.apply(operationId, amount));
    },
    ...(lookup !== 'none' && { lookup: lookups[answer] }),
  };
  return {
    effect,
    target,
    handlers,
    ...(!keyed && { key: null }),
    ...(lookup !== 'none' && { lookup }),
    plan: { deadlines: { attemptMs: isSettled ? 1 : 60_000, settleMs: isSettled ? 0 : 60_000 } },
  };
}

/** What the rules ask for, as the outcome's kind; `attention` for one that a person must resolve. */
function expected({ effect, keyed, lookup, answer, died, purpose, isSettled }: Case): string {
  const isFound = lookup !== 'none' && answer === 'honest' && died === 'after_effect';
  if (isFound) return 'committed';
  if (effect === 'safe') return purpose === 'settle' ? 'released' : 'committed';
  if (effect === 'conditional' && keyed && purpose === 'execute') return 'committed';
  if (lookup === 'conclusive' && answer === 'honest') {
    if (!isSettled) return 'busy';
    return purpose === 'settle' ? 'released' : 'committed';
  }
  return lookup !== 'none' && answer === 'threw' ? 'unknown' : 'attention';
}

function kindOf(outcome: OperationOutcome): string {
  return outcome.kind === 'unknown' && outcome.attention ? 'attention' : outcome.kind;
}

describe.each(STORES)('an operation in doubt on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  test.each(
    (['safe', 'conditional', 'unsafe'] as const).flatMap((effect) =>
      (['execute', 'settle'] as const).map((purpose) => ({ effect, purpose })),
    ),
  )(
    '[S2.4][S5] $effect, to $purpose: is settled as the rules say, with at most one effect, and its row never lies',
    async ({ effect, purpose }) => {
      await Promise.all(
        CASES.filter((each) => each.effect === effect && each.purpose === purpose).map((each) => check(each)),
      );
    },
  );

  async function check(each: Case): Promise<void> {
    const calls = { execute: 0 };
    const operation = await Operation.reserve(ledger, specOf(each, calls));
    await operation.crash(each.died);
    if (each.isSettled) await sleep(3);
    const before = calls.execute;
    const outcome = await operation.attempt({ purpose: each.purpose });
    expect([each, kindOf(outcome)]).toEqual([each, expected(each)]);
    expect(await operation.alerts()).toHaveLength(kindOf(outcome) === 'attention' ? 1 : 0);
    if (each.purpose === 'settle') expect(calls.execute).toBe(before);
    if (each.effect === 'safe') return; // it reads: how often does not matter
    expect(operation.effects).toBeLessThanOrEqual(1);
    if (outcome.kind === 'committed') expect([each, operation.effects]).toEqual([each, 1]);
    if (outcome.kind === 'released') expect([each, operation.effects]).toEqual([each, 0]);
  }

  describe('whose precondition no longer holds', () => {
    const spec = (overrides: Partial<OperationSpec>): OperationSpec => {
      let checks = 0;
      const { handlers, ...rest } = overrides;
      const precondition = () => Promise.resolve((checks += 1) === 1 ? holds() : fails('sold out'));
      return { ...rest, handlers: { precondition, ...handlers } };
    };

    /** The first attempt's request is sent and stays on its way until `land`. */
    const onItsWay = async (lookup: 'plain' | 'conclusive', settleMs: number) => {
      const target = new Target(true);
      const operation: Operation = await Operation.reserve(
        ledger,
        spec({
          target,
          lookup,
          handlers: {
            execute: () => Promise.reject(new Error('socket hang up')),
            lookup: honestLookup(target),
          },
          plan: { deadlines: { attemptMs: 1, settleMs } },
        }),
      );
      await operation.attempt();
      await sleep(3);
      return { operation, land: () => target.apply(operation.operationId, 5) };
    };

    test('[S2.2][S2.4] is refused once it is reconciled as not applied, for good', async () => {
      const { operation } = await onItsWay('conclusive', 0);
      expect(await operation.attempt()).toEqual({ kind: 'refused', reason: 'sold out' });
      expect(await operation.row()).toMatchObject({
        state: 'refused',
        end: { cause: 'precondition_failed' },
      });
      expect(operation.effects).toBe(0);
    });

    test('[S2.2][S2.4] waits while the earlier request may still land, and takes what landed', async () => {
      const { operation, land } = await onItsWay('conclusive', 60_000);
      expect(await operation.attempt()).toMatchObject({ kind: 'busy', reason: 'settling' });
      expect(await operation.row()).toMatchObject({ state: 'in_flight', end: null });
      land();
      expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
      expect(operation.effects).toBe(1);
    });

    test('[S2.2] goes to a person where `not applied` is not final', async () => {
      for (const settleMs of [0, 60_000]) {
        const { operation } = await onItsWay('plain', settleMs);
        expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
        expect(await operation.row()).toMatchObject({ state: 'attention', end: null });
      }
    });

    test('[S2.2] goes to a person where nothing can tell whether it is itself the reason', async () => {
      for (const handlers of [{}, { lookup: () => Promise.resolve(unknown()) }]) {
        const operation = await Operation.reserve(ledger, spec({ handlers }));
        await operation.crash('after_effect');
        expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: true });
        expect(operation.effects).toBe(1);
      }
    });

    test('[S2.2] is looked at again where the lookup only failed', async () => {
      const lookup = () => Promise.reject(new Error('no route'));
      const operation = await Operation.reserve(ledger, spec({ handlers: { lookup } }));
      await operation.crash('after_effect');
      expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
      expect(await operation.row()).toMatchObject({ state: 'in_flight' });
    });
  });

  test('[S2.2] a precondition that can’t be checked leaves the doubt as it was', async () => {
    let checks = 0;
    const precondition = () =>
      (checks += 1) === 1 ? Promise.resolve(holds()) : Promise.reject(new Error('down'));
    const operation = await Operation.reserve(ledger, { handlers: { precondition } });
    await operation.crash('after_effect');
    expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
    expect(await operation.row()).toMatchObject({ state: 'in_flight' });
    expect(operation.effects).toBe(1);
  });

  describe('sent again and failing', () => {
    /** The first attempt is applied and its answer lost; later ones get `failure`. */
    const sentTwice = (failure: Error, overrides: Partial<OperationSpec> = {}) => {
      let sends = 0;
      const target = overrides.target ?? new Target(true);
      const { handlers, ...rest } = overrides;
      return Operation.reserve(ledger, {
        ...rest,
        target,
        handlers: {
          async execute({ amount }, { operationId }) {
            if ((sends += 1) > 1) throw failure;
            target.apply(operationId, amount);
            return Promise.reject(new Error('socket hang up'));
          },
          ...handlers,
        },
      });
    };

    test('[S5] a later attempt that was not sent proves nothing about the earlier one', async () => {
      const operation = await sentTwice(ActionFailure.notSent('the line is down'));
      expect(await operation.attempt()).toMatchObject({ kind: 'unknown', attention: false });
      expect(await operation.attempt()).toMatchObject({
        kind: 'unknown',
        attention: false,
        failure: { message: 'the line is down' },
      });
      expect(await operation.row()).toMatchObject({ state: 'in_flight' });
      expect(await operation.attempt({ purpose: 'settle' })).toMatchObject({
        kind: 'unknown',
        attention: true,
      });
      expect(operation.effects).toBe(1);
    });

    test('[S5] nor does one that was refused for good: it may be refused because of the earlier one', async () => {
      const conflict = ActionFailure.permanent('already exists', 'exists');
      const blind = await sentTwice(conflict);
      await blind.attempt();
      expect(await blind.attempt()).toMatchObject({
        kind: 'unknown',
        attention: true,
        failure: { code: 'exists' },
      });

      const target = new Target(true);
      let looks = 0;
      const late = () =>
        (looks += 1) === 1
          ? Promise.resolve(unknown())
          : honestLookup(target)({ operationId: seen.operationId });
      const seen: Operation = await sentTwice(conflict, { target, handlers: { lookup: late } });
      await seen.attempt();
      expect(await seen.attempt()).toMatchObject({ kind: 'committed', result: { value: { amount: 5 } } });
      expect(target.total).toBe(1);
    });

    test('[S5] refused for good and not there at the target, it has failed once nothing can land any more', async () => {
      const conclusive = (settleMs: number, attemptMs = 1) =>
        sentTwice(ActionFailure.permanent('unknown account'), {
          lookup: 'conclusive',
          handlers: { lookup: () => Promise.resolve(notApplied()) },
          plan: { deadlines: { attemptMs, settleMs } },
        });
      const onItsWay = await conclusive(60_000, 60_000);
      await onItsWay.attempt();
      expect(await onItsWay.attempt()).toMatchObject({ kind: 'busy', reason: 'settling' });
      expect(await onItsWay.row()).toMatchObject({ state: 'in_flight', end: null });

      const settled = await conclusive(0);
      await settled.attempt();
      await sleep(3);
      expect(await settled.attempt()).toMatchObject({
        kind: 'failed',
        failure: { code: 'permanent_failure' },
      });
    });

    test('[S5] refused for good where `not applied` is not final, a person is asked', async () => {
      const operation = await sentTwice(ActionFailure.permanent('unknown account'), {
        handlers: { lookup: () => Promise.resolve(notApplied()) },
      });
      await operation.attempt();
      expect(await operation.attempt()).toMatchObject({
        kind: 'unknown',
        attention: true,
        failure: { code: 'permanent_failure' },
      });
      expect(operation.effects).toBe(1);
    });

    test('[S2.4] what a conclusive lookup has settled is in doubt no more', async () => {
      const target = new Target(false);
      let sends = 0;
      const operation = await Operation.reserve(ledger, {
        effect: 'unsafe',
        target,
        lookup: 'conclusive',
        handlers: {
          execute: () =>
            Promise.reject((sends += 1) === 1 ? new Error('reset') : ActionFailure.notSent('down')),
          lookup: honestLookup(target),
        },
        plan: { deadlines: { attemptMs: 1, settleMs: 0 } },
      });
      await operation.attempt();
      await sleep(3);
      expect(await operation.attempt()).toMatchObject({ kind: 'released' });
      expect(sends).toBe(2);
    });

    test('[S2.4] the handler is told whether an earlier execution may have been applied', async () => {
      for (const [isSettled, expected] of [
        [false, [true, false, false]],
        [true, [true, true, true]],
      ] as const) {
        const told: boolean[] = [];
        const operation = await Operation.reserve(ledger, {
          target: new Target(true),
          lookup: 'conclusive',
          handlers: {
            execute(_input, { isFirstSend }) {
              told.push(isFirstSend);
              return Promise.reject(told.length === 1 ? new Error('reset') : ActionFailure.notSent('down'));
            },
            lookup: () => Promise.resolve(isSettled ? notApplied() : unknown()),
          },
          plan: { deadlines: { attemptMs: 1, settleMs: 0 } },
        });
        for (let sent = 0; sent < 3; sent += 1) {
          await operation.attempt();
          await sleep(3);
        }
        expect(told).toEqual(expected);
      }
    });
  });

  test('[S2.3] settling an operation that was never sent gives it back and shuts out older attempts', async () => {
    const operation = await Operation.reserve(ledger, { effect: 'unsafe' });
    expect(await operation.attempt({ attempt: 2, purpose: 'settle' })).toMatchObject({
      kind: 'released',
      failure: { kind: 'notApplied' },
    });
    expect(await operation.row()).toMatchObject({ state: 'released', executions: 0 });
    expect(await operation.attempt({ attempt: 1 })).toMatchObject({ kind: 'fenceStale', rowAttempt: 2 });
    expect(operation.effects).toBe(0);
  });

  test('[S2.4] an earlier claim without an intent means that nothing was sent', async () => {
    const operation = await Operation.reserve(ledger, { effect: 'unsafe' });
    const { operationId, taskId, ordinal } = operation;
    operation.attempts = 1;
    await ledger.claim({
      operationId,
      taskId,
      ordinal,
      attempt: 1,
      claimMs: 60_000,
      attemptMs: 1,
      executing: false,
      notes: [],
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    expect(operation.effects).toBe(1);
  });

  test('[S2.4] an applied operation is never executed again, whatever a lookup says', async () => {
    const operation = await Operation.reserve(ledger, {
      handlers: {
        verify: () => Promise.resolve({ kind: 'not_yet' }),
        lookup: () => Promise.resolve(notApplied()),
      },
      plan: { deadlines: { verifyMs: 0 } },
    });
    expect(await operation.attempt()).toMatchObject({ kind: 'notYet' });
    for (const purpose of ['execute', 'settle'] as const)
      expect(await operation.attempt({ purpose })).toMatchObject({ kind: 'notYet' });
    expect(operation.effects).toBe(1);
    expect(await operation.row()).toMatchObject({ state: 'applied', executions: 1 });
  });

  test('[S3.5] a person’s `not applied` lets it be sent, a person’s `applied` has it verified and committed', async () => {
    let sends = 0;
    const execute: Handlers['execute'] = ({ amount }, { operationId }) =>
      (sends += 1) === 1 ? Promise.reject(new Error('reset')) : Promise.resolve({ id: operationId, amount });
    const resolveAs = async (
      operation: Operation,
      resolution: Parameters<Ledger['resolve']>[0]['resolution'],
    ) => {
      const { operationId, taskId, ordinal } = operation;
      operation.attempts += 1;
      await ledger.resolve({
        operationId,
        taskId,
        ordinal,
        attempt: operation.attempts,
        resolution,
        end: null,
        notes: [],
      });
      operation.attempts += 1;
    };
    const not = await Operation.reserve(ledger, { effect: 'unsafe', handlers: { execute } });
    await not.attempt();
    await resolveAs(not, { as: 'not_applied', by: 'bob' });
    expect(await not.attempt()).toMatchObject({ kind: 'committed' });
    expect(sends).toBe(2);

    sends = 0;
    const verify: Handlers['verify'] = (_input, result) =>
      Promise.resolve(result.id === 'by-hand' ? verified() : { kind: 'not_yet' });
    const did = await Operation.reserve(ledger, { effect: 'unsafe', handlers: { execute, verify } });
    await did.attempt();
    const result = { kind: 'inline', value: { id: 'by-hand', amount: 5 } } as const;
    await resolveAs(did, { as: 'applied', by: 'bob', result });
    expect(await did.attempt({ purpose: 'settle' })).toEqual({ kind: 'committed', replayed: false, result });
    expect(sends).toBe(1);
  });

  test('[S2.4][S2.6] what a lookup finds is verified before it is committed', async () => {
    const operation: Operation = await Operation.reserve(ledger, {
      handlers: {
        lookup: ({ operationId }) => Promise.resolve(applied({ id: operationId, amount: 5 })),
        verify: () => Promise.resolve(verified()),
      },
    });
    await operation.crash('after_effect');
    expect(await operation.attempt()).toMatchObject({ kind: 'committed' });
    const audit = await ledger.audit({ taskId: operation.taskId });
    expect(audit.at(-1)?.data).toMatchObject({ how: 'looked_up', verified: true });
    expect(operation.effects).toBe(1);
  });
});
