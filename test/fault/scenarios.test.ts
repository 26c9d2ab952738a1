/** The four scenarios that everything else is made of, and what callers may rely on around them. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { StoreKind } from '../support/fault-system.ts';

const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open();
});
afterAll(() => system.close());

async function atWork(kind: StoreKind) {
  const store = await system.store(kind);
  const taskQueue = unique('scenarios');
  const worker = await system.worker(store, { taskQueue }).ready();
  return { store, taskQueue, worker, client: await system.client(store, taskQueue) };
}

const callOf = (action: string, args: Record<string, string | number> = { value: 'v' }) => ({
  action,
  args,
  key: unique('key'),
  principal: PRINCIPAL,
});

const endpointsOf = async (operationId: string) =>
  (await system.target.requests({ operationId })).map(({ endpoint }) => endpoint);

describe.each(STORES)('scenarios, on %s', (kind) => {
  test('[S2.3] [S2.7] [S10.4] a clean run: one request, one effect, and an audit that says who, what, when', async () => {
    const { store, worker, client } = await atWork(kind);
    const { taskId, operationId } = await client.start(callOf('target_conditional'));
    expect(await outcomeOf(client, taskId)).toMatchObject({
      status: 'completed',
      effect: 'applied',
      cause: 'committed',
      replayed: false,
    });
    expect(await endpointsOf(operationId)).toEqual(['apply']);
    expect(await system.target.count(operationId)).toBe(1);
    const audit = await client.audit(taskId, PRINCIPAL);
    expect(audit.map(({ type }) => type)).toEqual([
      'operation.reserved',
      'operation.claimed',
      'operation.committed',
    ]);
    expect(JSON.stringify(audit[0])).toContain(PRINCIPAL.subject);
    expect(await store.ledger.verifyAudit({ taskId })).toMatchObject({ ok: true });
    expect(await store.ledger.alerts({ tenant: PRINCIPAL.tenant, taskId })).toEqual([]);
    await worker.kill();
  });

  test('[S2.4] [S5.1] retry after a crash, caught by the key: two requests under one key, one effect', async () => {
    const { store, taskQueue, worker, client } = await atWork(kind);
    const gate = unique('gate');
    await system.target.setMode({ kind: 'hold', gate, when: 'afterApply' }, { times: 1 });
    // Nobody can be asked about it, so only the target's own deduplication by operationId is left.
    const { taskId, operationId } = await client.start(callOf('target_large', { value: 'v', bytes: 5 }));
    await system.target.reached(gate);
    await worker.kill();
    const standby = await system.worker(store, { taskQueue }).ready();
    expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(await endpointsOf(operationId)).toEqual(['apply', 'apply']);
    expect(await system.target.count(operationId)).toBe(1);
    await system.target.release(gate);
    await standby.kill();
  });

  test('[S2.2] [S1.6] precondition false: nothing is done, permanent failure said so; the same call may be made again later', async () => {
    const { worker, client } = await atWork(kind);
    const requires = `r${(await system.target.total()) + 1}`;
    const call = callOf('target_guarded', { value: 'v', requires });
    const { taskId, operationId } = await client.start(call);
    expect(await outcomeOf(client, taskId)).toMatchObject({
      status: 'failed',
      effect: 'none',
      cause: 'precondition_failed',
    });
    expect(await endpointsOf(operationId)).toEqual([]);
    const first = await client.start(callOf('target_conditional')); // makes the resource
    await outcomeOf(client, first.taskId);
    const again = await client.start(call);
    expect(again).toMatchObject({ operationId });
    expect(again.taskId).not.toBe(taskId);
    expect(await outcomeOf(client, again.taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(await system.target.count(operationId)).toBe(1);
    expect(await client.get(taskId, PRINCIPAL)).toMatchObject({ status: 'failed', effect: 'none' });
    await worker.kill();
  });

  test('[S2.6] [S6.2] [S6.5] verification false: the effect is rolled back, and a person is alerted', async () => {
    const { store, worker, client } = await atWork(kind);
    await system.target.setMode({ kind: 'applyOther', value: 'something else' }, { times: 1 });
    const { taskId, operationId } = await client.start(callOf('target_conditional'));
    expect(await outcomeOf(client, taskId)).toMatchObject({
      status: 'failed',
      effect: 'rolled_back',
      cause: 'verify_failed',
    });
    expect([await system.target.count(operationId), await system.target.undone(operationId)]).toEqual([1, 1]);
    const alerts = () => store.ledger.alerts({ tenant: PRINCIPAL.tenant, taskId });
    expect(await alerts()).toMatchObject([{ type: 'verify_failed', operationId }]);
    await expect.poll(async () => (await alerts())[0]?.sentAt, { timeout: 20_000 }).toBeTypeOf('number');
    expect(worker.output).toContain('The effect is not as promised');
    await worker.kill();
  });

  test('[S1.5] [mode 5] two processes at a barrier with one key: both get one task, one effect', async () => {
    const store = await system.store(kind);
    const taskQueue = unique('barrier');
    const stop = { point: 'after_reserve' } as const;
    const callers = await Promise.all([1, 2].map(() => system.caller(store, { taskQueue, stop }).ready()));
    const request = callOf('target_unsafe');
    const answers = callers.map((caller) => caller.order({ order: 'start', request }));
    const [one, two] = await Promise.all(callers.map((caller) => caller.reached(1)));
    expect(one).toEqual(two); // both hold the same reservation, and neither has started
    await Promise.all(callers.map((caller) => caller.order({ order: 'goOn' })));
    const worker = await system.worker(store, { taskQueue }).ready();
    const [first, second] = (await Promise.all(answers)) as { taskId: string; operationId: string }[];
    expect(second?.taskId).toBe(first?.taskId);
    const client = await system.client(store, taskQueue);
    expect(await outcomeOf(client, first?.taskId ?? '')).toMatchObject({ status: 'completed' });
    expect(await endpointsOf(first?.operationId ?? '')).toEqual(['apply']);
    await Promise.all([worker.kill(), ...callers.map((caller) => caller.kill())]);
  });

  test('[S1.1] [S1.7] two ids, no key, attach off: two effects, and both answers say that nothing would be sent again', async () => {
    const { worker, client } = await atWork(kind);
    const { key: _key, ...keyless } = callOf('target_conditional', { value: unique('v') });
    const tasks = [
      await client.start({ ...keyless, attach: false }),
      await client.start({ ...keyless, attach: false }),
    ];
    const outcomes = await Promise.all(tasks.map(({ taskId }) => outcomeOf(client, taskId)));
    expect(outcomes.map(({ status, autoRetry, attached }) => ({ status, autoRetry, attached }))).toEqual(
      Array(2).fill({ status: 'completed', autoRetry: false, attached: false }),
    );
    const counts = await Promise.all(outcomes.map(({ operationId }) => system.target.count(operationId)));
    expect(counts).toEqual([1, 1]);
    expect(outcomes[0]?.operationId).not.toBe(outcomes[1]?.operationId);
    await worker.kill();
  });

  test('[S2.9] [mode 7] a caller that mutates what it got changes nothing', async () => {
    const { worker, client } = await atWork(kind);
    const call = callOf('target_conditional');
    const { taskId } = await client.start(call);
    const first = (await outcomeOf(client, taskId)).result as Record<string, unknown>;
    const original = structuredClone(first);
    first['value'] = 'mine now';
    delete first['resourceId'];
    expect((await client.start(call)).result).toEqual(original);
    expect((await client.get(taskId, PRINCIPAL)).result).toEqual(original);
    await worker.kill();
  });
});

describe.each(STORES)('close, reopen, reconcile by key, on %s', (kind) => {
  test.each([
    ['with the engine’s data', false],
    ['without it', true],
  ])(
    '[S1.5] [S2.4] crash of everything after the effect, reopened %s: the same call finds out and sends nothing',
    async (_how, isForgotten) => {
      const before = await system.store(kind);
      const taskQueue = unique('reopen');
      const call = callOf('target_unsafe_lookup');
      const victim = await system.worker(before, { taskQueue, stop: { point: 'after_effect' } }).ready();
      const { taskId, operationId } = await (await system.client(before, taskQueue)).start(call);
      await victim.reached(1);
      await victim.kill();
      if (isForgotten) await system.forgetTemporal();
      else await (await system.killTemporal()).restart();
      const store = await system.reopen(before);
      const worker = await system.worker(store, { taskQueue }).ready();
      const client = await system.client(store, taskQueue);
      expect(await client.start(call)).toMatchObject({ taskId, operationId });
      expect(await outcomeOf(client, taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
      expect((await endpointsOf(operationId)).filter((endpoint) => endpoint === 'apply')).toHaveLength(1);
      expect(await system.target.count(operationId)).toBe(1);
      await worker.kill();
    },
  );
});
