/** The oracle is the provider's own books. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { charge } from '../../examples/provider/handlers.ts';
import { startProvider } from '../../examples/provider/service.ts';
import type { Provider } from '../../examples/provider/service.ts';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

const BILL = { customer: 'c1', amountCents: 1_250, currency: 'EUR' };

let provider: Provider;
let server: TestServer;
let example: OpenExample<unknown>;
beforeEach(async () => {
  provider = await startProvider();
  process.env['HOLDFAST_PROVIDER_URL'] = provider.url;
  example = await openExample(server, [charge]);
});
afterEach(async () => {
  await example.close();
  await provider.close();
});

const bill = () => example.call('charge_customer', BILL, 'invoice-9');

beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

describe('provider example', () => {
  test('[S1.3] a customer is charged once, however often the same key asks', async () => {
    const ends = await Promise.all([bill(), bill(), bill()]);
    expect(ends.map(({ status }) => status)).toEqual(['completed', 'completed', 'completed']);
    expect(ends[0].result).toEqual({ chargeId: 'ch_1', amountCents: 1_250, currency: 'EUR' });
    expect(provider.books()).toEqual({ charges: 1, refunds: 0, chargedCents: 1_250, refundedCents: 0 });
  });

  test('[S2.4] a lost answer is looked up, not sent again', async () => {
    provider.behave('drop', 1);
    expect(await bill()).toMatchObject({
      status: 'completed',
      effect: 'applied',
      result: { chargeId: 'ch_1' },
    });
    expect(provider.books().charges).toBe(1);
  });

  test('[S2.6][S6.5] a 200 without a charge ends failed, with effect none, and a person hears of it', async () => {
    provider.behave('lie', 1);
    const end = await bill();
    expect(end).toMatchObject({ status: 'failed', effect: 'none', cause: 'verify_failed' });
    expect(provider.books().charges).toBe(0);
    expect(await example.alerts(end.taskId)).toContain('verify_failed');
  });

  test('[S6.1] [S6.5] a charge of another amount is refunded, and a person hears of it', async () => {
    provider.behave('wrong', 1);
    const end = await bill();
    expect(end).toMatchObject({ status: 'failed', effect: 'rolled_back', cause: 'verify_failed' });
    expect(provider.books()).toEqual({ charges: 1, refunds: 1, chargedCents: 12_500, refundedCents: 12_500 });
    expect(await example.alerts(end.taskId)).toContain('verify_failed');
  });

  test('[S5] "later" is waited out and "never" is final', async () => {
    provider.behave('busy', 1);
    expect(await bill()).toMatchObject({ status: 'completed' });
    const tooMuch = await example.call('charge_customer', { ...BILL, amountCents: 1_000_001 }, 'big');
    expect(tooMuch).toMatchObject({ status: 'failed', effect: 'none', cause: 'permanent_failure' });
    expect(provider.books().charges).toBe(1);
  });

  test('[S7.4] a cancel that meets a charge under way refunds it', async () => {
    provider.behave('hold', 1);
    const { taskId } = await example.start('charge_customer', BILL, 'invoice-9');
    await provider.held();
    await example.cancel(taskId);
    provider.release();
    expect(await example.wait(taskId)).toMatchObject({ status: 'cancelled', effect: 'rolled_back' });
    expect(provider.books()).toEqual({ charges: 1, refunds: 1, chargedCents: 1_250, refundedCents: 1_250 });
  });
});
