/** The ready-made actions keep what they promise on a target that misbehaves; the oracle is the target's counter. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { startFaultTarget } from '../support/fault-target.ts';
import type { FaultTarget, Mode } from '../support/fault-target.ts';
import { targetActions } from '../support/target-actions.ts';
import { openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

let server: TestServer;
let target: FaultTarget;
let example: OpenExample<unknown>;
beforeAll(async () => {
  [server, target] = await Promise.all([openTestServer('local'), startFaultTarget()]);
  process.env['HOLDFAST_TARGET_URL'] = target.url;
});
beforeEach(async () => {
  await target.reset();
  example = await openExample(server, targetActions);
});
afterEach(() => example.close());
afterAll(async () => {
  await target.stop();
  await server.close();
});

const DEDUPED = ['target_conditional', 'target_abortable', 'target_eventual', 'target_inline'];
const LOOKED_UP = [...DEDUPED, 'target_unsafe_lookup'];
const put = (action: string) => example.call(action, { value: 'v' }, 'k');
const lost: Mode = { kind: 'applyThenDrop' };

describe('target actions', () => {
  test.each([...LOOKED_UP, 'target_unsafe'])('%s puts a value once', async (action) => {
    const end = await put(action);
    expect(end).toMatchObject({ status: 'completed', effect: 'applied', result: { value: 'v' } });
    expect(await target.count(end.operationId)).toBe(1);
  });

  test.each(LOOKED_UP)('[S2.4] [S5.1] %s looks a lost answer up', async (action) => {
    await target.setMode(lost, { times: 1 });
    const end = await put(action);
    expect(end).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(await target.requests({ endpoint: 'apply' })).toHaveLength(1);
    expect(await target.count(end.operationId)).toBe(1);
  });

  test.each(LOOKED_UP)('[S2.4] [S5.1] %s sends again what was provably lost on the way', async (action) => {
    await target.setMode({ kind: 'dropBefore' }, { times: 1 });
    const end = await put(action);
    expect(end).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(await target.count(end.operationId)).toBe(1);
  });

  test.each([lost, { kind: 'dropBefore' } as const])(
    '[S5.1] target_unsafe asks a person after %o',
    async (mode) => {
      await target.setMode(mode, { times: 1 });
      const end = await put('target_unsafe');
      expect(end).toMatchObject({ status: 'needs_attention', result: null });
      expect(await target.requests({ endpoint: 'apply' })).toHaveLength(1);
    },
  );

  test('[S2.6] target_eventual waits until the effect shows', async () => {
    await target.setMode({ kind: 'applyUnseen', looks: 3 });
    const end = await put('target_eventual');
    expect(end).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(await target.count(end.operationId)).toBe(1);
  });

  test('[S6.1] [S6.2] what is not as asked is undone once, though the undo’s answer got lost', async () => {
    await target.setMode({ kind: 'applyOther', value: 'other' });
    await target.setMode(lost, { endpoint: 'undo', times: 1 });
    const end = await put('target_conditional');
    expect(end).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'verify_failed' });
    expect([await target.count(end.operationId), await target.undone(end.operationId)]).toEqual([1, 1]);
  });

  test.each(['target_safe', 'target_inline_safe'])(
    '[S5] %s reads again after any failure',
    async (action) => {
      const { result } = await put('target_conditional');
      await target.setMode({ kind: 'dropBefore' }, { endpoint: 'read', times: 2 });
      const { resourceId } = result as { resourceId: string };
      const end = await example.call(action, { resourceId }, 'read');
      expect(end).toMatchObject({ status: 'completed', effect: 'none', result: { found: true, value: 'v' } });
    },
  );
});
