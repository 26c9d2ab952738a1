/**
 * The rehearsal keeps its own promise (S6.6): it finds five planted bugs by the target's own count, names them in the
 * scenarios where they bite and nowhere else, and lets right handlers pass.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { charge } from '../../examples/provider/handlers.ts';
import { startProvider } from '../../examples/provider/service.ts';
import {
  applied,
  defineAction,
  implementAction,
  mismatch,
  notApplied,
  sensitive,
  verified,
} from '../../src/index.ts';
import { verifyAuditExport } from '../../src/ledger/audit-export.ts';
import { openTestServer, rehearse } from '../../src/testing/index.ts';
import type { RehearsalReport, TestServer } from '../../src/testing/index.ts';
import { startFaultTarget } from '../support/fault-target.ts';
import type { FaultTarget } from '../support/fault-target.ts';
import { targetConditional, targetUnsafe } from '../support/target-actions.ts';
import {
  wronglyConditional,
  wronglyKeyed,
  wronglyPrepared,
  wronglyUndone,
  wronglyVerified,
} from '../support/wrong-actions.ts';

let server: TestServer;
let target: FaultTarget;
beforeAll(async () => {
  [server, target] = await Promise.all([openTestServer('local'), startFaultTarget()]);
  process.env['HOLDFAST_TARGET_URL'] = target.url;
});
afterAll(async () => {
  await target.stop();
  await server.close();
});

const args = { value: 'v' };

/** What was found, by scenario. */
const found = ({ scenarios }: RehearsalReport): Record<string, string[]> =>
  Object.fromEntries(
    scenarios.filter(({ verdict }) => verdict === 'broken').map(({ scenario, broken }) => [scenario, broken]),
  );

const NOT_THE_EDIT = [
  'completed, and the target counts no effect of this operation',
  'the target counts 1 with the arguments that an approver replaced',
];
const TWICE = 'one operation, and the target counts 2 effects';

describe('planted bugs', () => {
  test('[S6.6] [S5.1] an unsafe effect called conditional, without look-up, is found wherever the call is made again', async () => {
    const report = await rehearse(wronglyConditional, { server });
    expect(report.ok).toBe(false);
    expect(found(report)).toEqual({
      'crash between call and verify': [TWICE],
      'crash between verify and commit': [TWICE],
      'two crashes after the call': ['one operation, and the target counts 3 effects'],
      'answer lost once': [TWICE],
      'no answer within the deadline': [TWICE],
      'answer lost every time': ['one operation, and the target counts 4 effects'],
      'interrupted during the call, answer lost': [TWICE],
      'frozen during the call, lands later': [TWICE],
    });
  });

  test('[S6.6] [S2.6] a verify that always passes is found by a target that answers and does nothing', async () => {
    const report = await rehearse(wronglyVerified, { server });
    expect(found(report)).toEqual({
      'answered, and nothing was done': [
        'completed, and the target counts no effect of this operation',
        expect.stringContaining('ended "completed"'),
      ],
    });
  });

  test('[S6.6] [S6.2] a rollback that is not idempotent is found wherever it is called again', async () => {
    const report = await rehearse(wronglyUndone, { server });
    expect(Object.keys(found(report))).toEqual([
      'undone, crash between call and verify',
      'undone, crash between verify and commit',
      'undone, its answer lost once',
      'undone, not to be seen at first',
    ]);
    expect(report.broken.every((promise) => promise.includes('undone 2 times'))).toBe(true);
  });

  test('[S6.6] [S1.3] an execute that ignores the operationId is found as soon as the target is asked by it', async () => {
    const report = await rehearse(wronglyKeyed, { server, only: 'crash' });
    expect(found(report)).toMatchObject({
      'nothing goes wrong': ['completed, and the target counts no effect of this operation'],
    });
  });

  test('[S6.6] [S1.3] and by its second effect where the target counts by what was ordered', async () => {
    const report = await rehearse(wronglyKeyed, {
      server,
      args: (key: string) => ({ value: key }),
      count: async (_operationId, { key }) => {
        const { applied } = await target.report();
        return Object.keys(applied).filter((each) => each.startsWith(key)).length;
      },
    });
    expect(found(report)).toMatchObject({
      'crash between call and verify': [TWICE],
      'answer lost once': [TWICE],
      'frozen during the call, lands later': [TWICE],
    });
    expect(found(report)['nothing goes wrong']).toBeUndefined();
  });
});

describe('a planted bug about edits', () => {
  test('[S6.6] [S4.2] an execute that sends what was prepared for the approver is found wherever the call is edited', async () => {
    const report = await rehearse(wronglyPrepared, { server, only: 'edit' });
    expect(found(report)).toEqual({
      'edited by an approver': NOT_THE_EDIT,
      'edited, then approved as it was': NOT_THE_EDIT,
      'edited, then called again as it was': NOT_THE_EDIT,
      'edited, then its answer lost once': NOT_THE_EDIT,
    });
  });
});

describe('right handlers', () => {
  test('[S6.6] the provider example keeps every promise, and its audit outlives the rehearsal', async () => {
    const provider = await startProvider();
    process.env['HOLDFAST_PROVIDER_URL'] = provider.url;
    try {
      const report = await rehearse(charge, { server });
      expect(report.broken).toEqual([]);
      expect(report.skipped.filter(({ reason }) => !reason.startsWith('policy asks nobody'))).toEqual([
        { group: 'verify', scenario: 'the precondition does not hold', reason: 'there is no precondition' },
      ]);
      expect(new Set(report.scenarios.map(({ group }) => group))).toEqual(
        new Set([
          'clean',
          'crash',
          'failure',
          'verify',
          'rollback',
          'cancel',
          'interrupt',
          'delivery',
          'continued',
        ]),
      );
      const counted = report.scenarios.reduce((sum, { effects }) => sum + (effects ?? 0), 0);
      expect(provider.books().charges).toBe(counted);
      expect(verifyAuditExport(report.audit)).toMatchObject({ ok: true, tasks: report.scenarios.length });
    } finally {
      await provider.close();
    }
  });

  test('[S6.6] an action whose target dedupes keeps every promise', async () => {
    const report = await rehearse(targetConditional, {
      server,
      args,
      count: target.count,
      undone: target.undone,
    });
    expect(report.broken).toEqual([]);
    expect(report.ok).toBe(true);
  });

  test('[S6.6] [S3.5] where nothing can be known a person is asked, and that keeps the promise', async () => {
    const report = await rehearse(targetUnsafe, { server, args, count: target.count, only: 'crash' });
    expect(report.broken).toEqual([]);
    const ends = Object.fromEntries(report.scenarios.map(({ scenario, end }) => [scenario, end]));
    expect(ends).toMatchObject({
      'crash between intent and call': 'needs a person',
      'crash between call and verify': 'needs a person',
      'crash after the commit': 'completed',
    });
    expect(report.notes.join()).toContain('frozen between intent and send');
  });
});

describe('what is left out of a rehearsal', () => {
  test('[S6.6] [S2.10] secrets, from its report and audit; the policy is not, and is answered', async () => {
    const letters = new Map<string, string>();
    const definition = defineAction({
      name: 'post_letter',
      version: 1,
      description: 'Posts a letter that only its reader may read.',
      effect: 'conditional',
      lookup: 'conclusive',
      input: z.object({ text: sensitive(z.string()) }),
      output: z.object({ id: z.string(), seal: sensitive(z.string()) }),
      rollback: { kind: 'inBand' },
      approval: () => ({ roles: ['postmaster'] }),
    });
    const letterOf = (id: string) => ({ id: `letter-${id}`, seal: `seal-${letters.get(id)}` });
    const post = implementAction(definition, {
      execute: async ({ text }, { operationId }) => {
        letters.set(operationId, text);
        return letterOf(operationId);
      },
      lookup: async ({ operationId }) =>
        letters.has(operationId) ? applied(letterOf(operationId)) : notApplied(),
      verify: async ({ text }, { id }) =>
        letters.get(id.slice('letter-'.length)) === text ? verified() : mismatch('another text'),
      rollback: async (_input, { id }) => void letters.delete(id.slice('letter-'.length)),
      rehearsal: {
        args: { text: 'meet me at nine' },
        count: async (operationId) => (letters.has(operationId) ? 1 : 0),
      },
    });
    const report = await rehearse(post, { only: 'crash' });
    expect(report.broken).toEqual([]);
    expect(report.scenarios.length).toBeGreaterThan(10);
    expect(report.approval).toBe('1 of postmaster; when nobody decides in time: deny');
    expect(report.args).toEqual({ text: '[redacted]' });
    expect(report.notes).toEqual(['Without `undone` a rollback that undoes twice goes unseen.']);
    expect(JSON.stringify(report)).not.toContain('nine');
  });
});

describe('a rehearsal that can not begin', () => {
  test('[S6.6] nobody says how to count: refused with what to write', async () => {
    await expect(rehearse(targetConditional, { server, args })).rejects.toMatchObject({
      code: 'invalid_configuration',
      message: expect.stringContaining('rehearsal: { args, count'),
    });
  });

  test('[S6.6] where time is skipped: refused, since one scenario’s wait would be another’s deadline', async () => {
    const skipping = { ...server, kind: 'time-skipping' } as const;
    const refused = rehearse(targetConditional, { server: skipping, args, count: target.count });
    await expect(refused).rejects.toMatchObject({ code: 'invalid_configuration' });
  });

  test('[S6.6] arguments that do not fit the contract are refused before anything is sent', async () => {
    const before = await target.total();
    const wrong = rehearse(targetConditional, { server, args: { value: 1 }, count: target.count });
    await expect(wrong).rejects.toMatchObject({ code: 'invalid_arguments' });
    expect(await target.total()).toBe(before);
  });

  test('[S6.6] an action that fails when nothing goes wrong is rehearsed no further', async () => {
    await target.setMode({ kind: 'refuse', status: 422 }, { times: 1 });
    const report = await rehearse(targetConditional, { server, args, count: target.count });
    expect(report.ok).toBe(false);
    expect(report.scenarios).toHaveLength(1);
    expect(report.skipped[0]).toMatchObject({ reason: 'the clean run did not complete' });
  });

  test('[S6.6] a count of all effects is no count of one operation', async () => {
    const report = await rehearse(targetConditional, {
      server,
      args,
      count: () => target.total(),
      only: 'the same key twice',
    });
    expect(report.broken[0]).toContain('before anything was sent');
  });
});
