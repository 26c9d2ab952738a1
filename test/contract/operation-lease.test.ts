/** S8.3 through the operation protocol: an attempt whose lease passed on while it was at work, or before it began. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { verified } from '../../src/contract/handlers.ts';
import type { ExecuteContext } from '../../src/contract/handlers.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import type { HeldLease } from '../../src/task/claim.ts';
import { deferred } from '../support/deferred.ts';
import { Operation, STORES, honestLookup } from '../support/operation-rig.ts';
import type { Handlers, Input, OperationSpec, TestStore } from '../support/operation-rig.ts';
import { Target } from '../support/operation-target.ts';

let drawn = 0;

describe.each(STORES)('an attempt under a lease on $kind', ({ open }) => {
  let store: TestStore;
  let ledger: Ledger;
  beforeAll(async () => {
    store = await open();
    ledger = store.ledger;
  });
  afterAll(() => store.close());

  async function leased(spec: OperationSpec = {}) {
    drawn += 1;
    const resource = `printer/${drawn}`;
    const operation = await Operation.reserve(ledger, {
      ...spec,
      definition: { resource: () => resource, ...spec.definition },
    });
    const id = operation.plan.lease?.id ?? '';
    const under = (fence: number): HeldLease => ({ id, resource, fence });
    return { operation, resource, id, under };
  }

  test('[S8.3] hands resource and fence to its handlers', async () => {
    const seen: ExecuteContext['lease'][] = [];
    const execute = ({ amount }: Input, { operationId: id, lease }: ExecuteContext) => {
      seen.push(lease);
      return Promise.resolve({ id, amount });
    };
    const { operation, resource, under } = await leased({ handlers: { execute } });
    expect(await operation.attempt({ lease: under(5) })).toMatchObject({ kind: 'committed' });
    expect(seen).toEqual([{ resource, fence: 5 }]);
    const plain = await Operation.reserve(ledger, { handlers: { execute } });
    await plain.attempt();
    expect(seen.at(-1)).toBeNull();
  });

  test('[S8.1] never begins without the grant that its plan names', async () => {
    const { operation, under } = await leased();
    await expect(operation.attempt()).rejects.toThrow('runs under the lease that its plan names');
    await expect(operation.attempt({ lease: { ...under(1), id: 'other' } })).rejects.toThrow();
    expect(operation.effects).toBe(0);
  });

  test('[S8.3] [case 34] whose lease passed on before it began sends nothing', async () => {
    const { operation, id, under } = await leased();
    await ledger.advanceFence(id, 9);
    expect(await operation.attempt({ lease: under(8) })).toEqual({
      kind: 'fenceStale',
      rowAttempt: 0,
      superseded: false,
      leaseFence: 9,
    });
    expect(operation.effects).toBe(0);
    expect(await operation.row()).toMatchObject({ state: 'reserved', attempt: 0 });
  });

  test('[S8.3] [S2.5] [case 34] paused between intent and send past its lease, it asks the ledger and sends nothing', async () => {
    const { operation, id, under } = await leased({ plan: { deadlines: { heartbeatMs: 3 } } });
    const faults = async ({ point }: { point: string }) => {
      if (point !== 'after_intent') return;
      await ledger.advanceFence(id, 9);
      await new Promise((resolve) => setTimeout(resolve, 5));
    };
    const outcome = await operation.attempt({ lease: under(8) }, { faults });
    expect(outcome).toMatchObject({ kind: 'fenceStale', superseded: false, leaseFence: 9 });
    expect(operation.effects).toBe(0);
  });

  test('[S8.3] [S2.7] [case 34] whose lease passed on while it was at work writes nothing; the next grant finds its effect', async () => {
    const target = new Target(true);
    const [asked, gate] = [deferred(), deferred()];
    const handlers: Handlers = {
      async execute({ amount }, { operationId }) {
        asked.resolve();
        await gate.promise;
        return target.apply(operationId, amount);
      },
      lookup: honestLookup(target),
      verify: () => Promise.resolve(verified()),
    };
    const { operation, id, under } = await leased({ target, handlers });
    const running = operation.attempt({ lease: under(8) });
    await asked.promise;
    const before = await operation.row();
    await ledger.advanceFence(id, 9);
    gate.resolve();
    expect(await running).toMatchObject({ kind: 'fenceStale', superseded: false, leaseFence: 9 });
    expect(await operation.row()).toMatchObject({
      state: 'in_flight',
      result: null,
      attempt: before.attempt,
    });
    expect((await operation.row()).lateOutcome).toMatchObject({ kind: 'applied' });
    expect(await operation.attempt({ lease: under(10) })).toMatchObject({ kind: 'committed' });
    expect(operation.effects).toBe(1);
  });

  test('[S8.3] [S6.2] a rollback under an older fence undoes nothing', async () => {
    let undone = 0;
    const handlers: Handlers = {
      rollback: () => Promise.resolve(void (undone += 1)),
      verifyRollback: () => Promise.resolve(verified()),
    };
    const { operation, id, under } = await leased({ handlers, definition: { onCancel: 'rollback' } });
    await operation.attempt({ lease: under(8) });
    await ledger.advanceFence(id, 9);
    const stale = await operation.rollback({ lease: under(8) });
    expect(stale).toMatchObject({ kind: 'fenceStale', leaseFence: 9 });
    expect(undone).toBe(0);
    await expect(operation.rollback()).rejects.toThrow('runs under the lease that its plan names');
  });
});
