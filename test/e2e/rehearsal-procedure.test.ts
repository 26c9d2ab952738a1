/**
 * A procedure's rehearsal (S6.3, S6.6): each step refused, lost, crashed, cancelled over and interrupted; undone in
 * reverse, by each step's own target's count; and a wrong undo is found.
 */
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  applied,
  defineAction,
  defineProcedure,
  implementAction,
  mismatch,
  notApplied,
  verified,
} from '../../src/index.ts';
import type { Action } from '../../src/index.ts';
import { verifyAuditExport } from '../../src/ledger/audit-export.ts';
import { openTestServer, rehearsalMarkdown, rehearseProcedure } from '../../src/testing/index.ts';
import type { RehearsalReport, TestServer } from '../../src/testing/index.ts';

const code = fileURLToPath(new URL('../support/procedures/rehearsed.ts', import.meta.url));
const input = z.object({ order: z.string() });
const args = { order: 'o-1' };
const ship = defineProcedure({ name: 'ship', description: 'Ships an order.', input });

let server: TestServer;
beforeAll(async () => {
  server = await openTestServer('local');
});
afterAll(() => server.close());

/** The targets' own books. */
const done = new Map<string, number>();
const undone = new Map<string, number>();
beforeEach(() => {
  done.clear();
  undone.clear();
});
const note = (book: Map<string, number>, id: string): void => void book.set(id, (book.get(id) ?? 0) + 1);

interface Kind {
  /** Undoes again whenever it is called. */
  isWronglyUndone?: boolean;
  /** Says that it undoes, and does not. */
  isNeverUndone?: boolean;
  needsApproval?: boolean;
}

function hold(name: string, { isWronglyUndone, isNeverUndone, needsApproval }: Kind = {}): Action {
  const contract = defineAction({
    name,
    version: 1,
    description: 'Holds something for an order.',
    effect: 'conditional',
    input,
    output: z.object({ id: z.string() }),
    rollback: { kind: 'inBand' },
    deadlines: { attempt: '3s', verify: '2s', run: '5m' },
    ...(needsApproval && { approval: () => ({ roles: ['dispatcher'] }) }),
  });
  const handlers = implementAction(contract, {
    execute: async (_input, { operationId }) => {
      if (!done.has(operationId)) note(done, operationId);
      return { id: operationId };
    },
    lookup: async ({ operationId }) => (done.has(operationId) ? applied({ id: operationId }) : notApplied()),
    verify: async (_input, { id }) => (done.has(id) ? verified() : mismatch('not there')),
    rollback: async (_input, { id }) => {
      if (isNeverUndone) return;
      if (isWronglyUndone || !undone.has(id)) note(undone, id);
    },
    verifyRollback: async (_input, { id }) =>
      isNeverUndone || undone.has(id) ? verified() : mismatch('still held'),
    rehearsal: {
      count: async (operationId) => done.get(operationId) ?? 0,
      undone: async (operationId) => undone.get(operationId) ?? 0,
    },
  });
  return handlers;
}

const rehearsed = (slot: Kind = {}, only?: string, name = 'ship'): Promise<RehearsalReport> =>
  rehearseProcedure(defineProcedure({ name, description: 'Ships an order.', input }), {
    server,
    code,
    args,
    actions: [hold('hold_funds'), hold('hold_slot', slot), hold('book_carrier')],
    ...(only !== undefined && { only }),
  });
const found = ({ scenarios }: RehearsalReport) =>
  scenarios.filter(({ verdict }) => verdict === 'broken').map(({ scenario }) => scenario);

describe('a procedure that keeps its promises', () => {
  test('[S6.6] [S6.3] is undone newest first wherever it fails, and every step is done once', async () => {
    const report = await rehearsed({ needsApproval: true });
    expect(report.broken).toEqual([]);
    const of = (name: string) => report.scenarios.find(({ scenario }) => scenario === name);
    expect(of('nothing goes wrong')).toMatchObject({ end: 'completed', effects: 3, undone: 0 });
    expect(of('carrier: refused for good')).toMatchObject({
      end: 'failed, rolled back',
      effects: 2,
      undone: 2,
      steps: [
        { step: 'funds', said: 'rolled_back', effects: 1, undone: 1 },
        { step: 'slot', said: 'rolled_back', effects: 1, undone: 1 },
        { step: 'carrier', said: 'none', effects: 0, undone: 0 },
      ],
    });
    expect(of('slot: cancelled during the call')).toMatchObject({
      end: 'cancelled, rolled back',
      effects: 2,
      undone: 2,
    });
    expect(of('funds: undoing is refused for good')).toMatchObject({ end: 'needs a person', effects: 2 });
    expect(of('slot: interrupted during the call')).toMatchObject({ end: 'completed', effects: 3 });
    const markdown = rehearsalMarkdown(report);
    expect(markdown).toContain('## Step by step');
    expect(markdown).toContain('| carrier: refused for good | slot | hold_slot | rolled_back | 1 | 1 |');
  }, 300_000);
});

describe('what a procedure asks people', () => {
  test('[S6.6] [S4.2] [S4.4] rejected, or decided by nobody: what was committed is undone, newest first', async () => {
    const report = await rehearsed({}, 'approval', 'ship_signed');
    expect(report.broken).toEqual([]);
    const ends = report.scenarios.map(({ scenario, end, effects, undone }) => [
      scenario,
      end,
      effects,
      undone,
    ]);
    expect(ends).toEqual([
      ['nothing goes wrong', 'completed', 3, 0],
      ['sign: the approval is rejected', 'failed, rolled back', 2, 2],
      ['sign: nobody decides in time', 'failed, rolled back', 2, 2],
      ['sign: continued as new while it waits for approval', 'completed', 3, 0],
    ]);
  });

  test('[S6.6] [S4.2] an undo that does nothing is found where the approval after its step is refused', async () => {
    const report = await rehearsed({ isNeverUndone: true }, 'approval', 'ship_signed');
    expect(found(report)).toEqual(['sign: the approval is rejected', 'sign: nobody decides in time']);
    expect(report.broken[0]).toContain('step slot: to be undone, and the target counts 1 standing');
  });

  test('[S6.6] [S4.2] a procedure that goes on after a refusal is named', async () => {
    const report = await rehearsed({}, 'approval', 'ship_anyway');
    expect(report.notes).toContain(
      'sign: the approval is rejected: carrier began all the same; see that this is meant.',
    );
    const signed = await rehearsed({}, 'the approval is rejected', 'ship_signed');
    expect(signed.notes).toHaveLength(1);
  });
});

describe('a run that continues as new', () => {
  test('[S6.6] [S3.6] does no step twice, loses no approval, and undoes what the runs before it did', async () => {
    const report = await rehearsed({}, 'continued', 'ship_signed');
    expect(report.broken).toEqual([]);
    const ends = report.scenarios.map(({ scenario, end, effects, undone }) => [
      scenario,
      end,
      effects,
      undone,
    ]);
    expect(ends).toEqual([
      ['nothing goes wrong', 'completed', 3, 0],
      ['continued as new after each step', 'completed', 3, 0],
      ['carrier: refused for good after the run continued as new', 'failed, rolled back', 2, 2],
      ['sign: continued as new while it waits for approval', 'completed', 3, 0],
    ]);
    expect(verifyAuditExport(report.audit)).toMatchObject({ ok: true, tasks: 4 });
  }, 240_000);

  test('[S6.6] [S3.6] a procedure that asks by the clock is found, though nothing goes wrong in a single run', async () => {
    const report = await rehearsed({}, 'continued as new after each', 'ship_by_clock');
    expect(found(report)).toEqual(['continued as new after each step']);
    expect(report.broken[0]).toContain('it asked for something else');
  });
});

describe('planted bugs in a step', () => {
  test('[S6.6] [S6.2] an undo that is not idempotent is found where it is lost half way', async () => {
    const report = await rehearsed({ isWronglyUndone: true }, 'rollback');
    expect(found(report)).toEqual(['slot: undone, crash between call and verify']);
    expect(report.broken[0]).toBe('slot: undone, crash between call and verify: step slot: undone 2 times');
  });

  test('[S6.6] [S6.3] an undo that does nothing is found wherever the procedure fails after its step', async () => {
    const report = await rehearsed({ isNeverUndone: true }, 'refused for good');
    expect(found(report)).toContain('carrier: refused for good');
    expect(report.broken.join('; ')).toContain('step slot: to be undone, and the target counts 1 standing');
  });

  test('[S6.6] a step whose target nobody counts is refused by name', async () => {
    const { rehearsal: _none, ...slot } = hold('hold_slot');
    const refused = rehearseProcedure(ship, {
      server,
      code,
      args,
      actions: [hold('hold_funds'), slot, hold('book_carrier')],
    });
    await expect(refused).rejects.toMatchObject({
      code: 'invalid_configuration',
      message: expect.stringContaining('hold_slot'),
    });
  });
});
