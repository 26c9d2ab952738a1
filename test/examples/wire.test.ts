/** The oracle is the bank's own books. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { wire } from '../../examples/wire/handlers.ts';
import { startBank } from '../../examples/wire/service.ts';
import type { Bank } from '../../examples/wire/service.ts';
import { openTestServer, rehearse } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { openExample } from './open-example.ts';
import type { OpenExample } from './open-example.ts';

const ORDER = { iban: 'DE02120300000000202051', amountCents: 125_000, currency: 'EUR' };
const PHRASE = 'wire 1250.00 EUR to DE02120300000000202051';

let bank: Bank;
let server: TestServer;
let example: OpenExample<unknown>;
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());
beforeEach(async () => {
  bank = await startBank();
  process.env['HOLDFAST_BANK_URL'] = bank.url;
  example = await openExample(server, [wire]);
});
afterEach(async () => {
  await example.close();
  await bank.close();
});

async function asked(args: object = ORDER) {
  const answer = await example.call('wire_money', { ...args }, 'invoice-9');
  expect(answer).toMatchObject({ status: 'awaiting_approval', effect: 'none' });
  return answer.taskId;
}
const approve = (taskId: string, challengeAnswer?: string, more: object = {}, subject = 'tess') =>
  example.decide(taskId, subject, ['treasurer'], {
    kind: 'approve',
    ...(challengeAnswer !== undefined && { challengeAnswer }),
    ...more,
  });

describe('wire example', () => {
  test('[S6.4] [S4.6] money leaves once, and only after its approval was typed', async () => {
    const taskId = await asked();
    expect(await approve(taskId)).toMatchObject({ accepted: false, code: 'wrong_challenge' });
    expect(await approve(taskId, PHRASE, { channel: 'mcp' })).toMatchObject({ code: 'not_allowed' });
    expect(bank.books().wires).toBe(0);
    expect(await approve(taskId, PHRASE)).toMatchObject({ code: 'approved' });
    expect(await example.wait(taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(bank.books()).toEqual({ wires: 1, wiredCents: 125_000 });
  });

  test('[S4.6] three wrong phrases reject the approval for good', async () => {
    const taskId = await asked();
    for (const amount of ['125.00', '12500.00', '1250'])
      expect(await approve(taskId, PHRASE.replace('1250.00', amount))).toMatchObject({
        code: 'wrong_challenge',
      });
    expect(await example.wait(taskId)).toMatchObject({ status: 'failed', cause: 'approval_rejected' });
    expect(bank.books().wires).toBe(0);
  });

  test('[S4.5] a large one takes the approval of two treasurers, who type the same phrase', async () => {
    const taskId = await asked({ ...ORDER, amountCents: 2_000_000 });
    const phrase = PHRASE.replace('1250.00', '20000.00');
    expect(await approve(taskId, phrase)).toMatchObject({ code: 'approval_recorded' });
    expect(await approve(taskId, phrase)).toMatchObject({ code: 'already_decided' });
    expect(bank.books().wires).toBe(0);
    expect(await approve(taskId, phrase, {}, 'theo')).toMatchObject({ code: 'approved' });
    expect(await example.wait(taskId)).toMatchObject({ status: 'completed' });
    expect(bank.books().wires).toBe(1);
  });

  test('[S2.4] after a lost answer the bank is asked, and nothing is sent again', async () => {
    bank.behave('drop', 1);
    const taskId = await asked();
    await approve(taskId, PHRASE);
    expect(await example.wait(taskId)).toMatchObject({ status: 'completed', effect: 'applied' });
    expect(bank.books().wires).toBe(1);
  });

  test('[S6.4] [S6.5] a wrong amount can not be taken back: a person is alerted, and nothing else is sent', async () => {
    bank.behave('wrong', 1);
    const taskId = await asked();
    await approve(taskId, PHRASE);
    expect(await example.wait(taskId)).toMatchObject({ status: 'needs_attention' });
    expect(await example.alerts(taskId)).toContain('verify_failed');
    expect(bank.books().wires).toBe(1);
  });

  test('[S6.6] the rehearsal finds no broken promise at every crash point, with the approval of each call crash', async () => {
    const found = await rehearse(wire, { server, only: 'crash' });
    expect(found.broken).toEqual([]);
    expect(found.scenarios.length).toBeGreaterThan(3);
  });
});
