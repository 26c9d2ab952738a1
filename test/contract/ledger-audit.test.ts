// S10: append-only, chained, in the transaction of the change it describes.
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/ledger/ledger.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place, Work } from './ledger-fixture.ts';

const NOTE = { type: 'cancel_requested', at: 1_750_000_000_123, data: { seq: 4, by: 'ada' } };

describe.each(fixture.STORES)('the audit on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  async function committed(): Promise<Work> {
    const work = await fixture.reserved(place.ledger);
    const claim = await fixture.claimed(place.ledger, work);
    await place.ledger.commit(claim, fixture.RESULT, {
      verified: true,
      how: 'executed',
      end: fixture.COMPLETED,
    });
    return work;
  }

  test('[S10.1] each hash is made of the one before and the entry, in the documented bytes', async () => {
    const entries = await place.ledger.audit(await committed());
    let previous = '0'.repeat(64);
    entries.forEach((entry, index) => {
      expect(entry.seq).toBe(index + 1);
      expect(entry.hash).toBe(byHand(previous, entry));
      previous = entry.hash;
    });
    expect(entries).toHaveLength(3);
  });

  test('[S10.4] entries say who asked, what was claimed, sent, verified and by which version', async () => {
    const [reserved, claimed, commit] = await place.ledger.audit(await committed());
    expect(reserved?.data).toMatchObject({ subject: 'ada', roles: ['buyer'], action: 'reserve_inventory' });
    expect(claimed?.data).toMatchObject({ executing: true, attempt: 1, generation: 1, contractVersion: 1 });
    expect(commit?.data).toMatchObject({ verified: true, how: 'executed', end: { status: 'completed' } });
    expect(commit?.data['process']).toMatch(/:\d+$/);
    expect(commit?.at).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('[S2.10] entries hold the digest of a result, never the result', async () => {
    const entries = await place.ledger.audit(await committed());
    expect(JSON.stringify(entries)).not.toContain('r-1');
    const sha256 = createHash('sha256').update('{"reservationId":"r-1"}').digest('hex');
    expect(entries.at(-1)?.data['result']).toEqual({ kind: 'inline', sha256 });
  });

  test('[S10.1] update and delete are refused by the database itself', async () => {
    const work = await committed();
    const where = `where task_id = '${work.taskId}'`;
    for (const statement of [
      `update audit set data = '{}' ${where}`,
      `delete from audit ${where}`,
      `update audit set hash = hash ${where} and seq = 1`,
      ...(kind === 'sqlite'
        ? [`insert or replace into audit select * from audit ${where} and seq = 2`]
        : ['truncate audit', 'truncate operation, attempt, audit_head, audit cascade']),
    ]) {
      await expect(place.raw(statement), statement).rejects.toThrow('append-only');
    }
    expect(await place.ledger.verifyAudit(work)).toEqual({ ok: true, tasks: 1, entries: 3 });
  });

  const forgeries: Record<string, { sql: (work: Work) => string[]; seq: number }> = {
    'a rewritten entry': {
      sql: ({ taskId }) => [
        `update audit set data = replace(data, 'ada', 'bob') where task_id = '${taskId}' and seq = 1`,
      ],
      seq: 1,
    },
    'a rewritten entry whose hash was made to fit': {
      sql: ({ taskId }) => [
        `update audit set type = 'operation.forged', hash = '${'ab'.repeat(32)}' where task_id = '${taskId}' and seq = 2`,
      ],
      seq: 2,
    },
    'a moved time': {
      sql: ({ taskId }) => [
        `update audit set at = '2020-01-01T00:00:00.000Z' where task_id = '${taskId}' and seq = 3`,
      ],
      seq: 3,
    },
    'an entry taken out': {
      sql: ({ taskId }) => [`delete from audit where task_id = '${taskId}' and seq = 2`],
      seq: 2,
    },
    'the last entry taken out': {
      sql: ({ taskId }) => [`delete from audit where task_id = '${taskId}' and seq = 3`],
      seq: 3,
    },
    'a head set back with its entry': {
      sql: ({ taskId }) => [
        `delete from audit where task_id = '${taskId}' and seq = 3`,
        `update audit_head set seq = 2 where task_id = '${taskId}'`,
      ],
      seq: 2,
    },
    'a result changed in its row': {
      sql: ({ taskId }) => [
        `update operation set result = replace(result, 'r-1', 'r-2') where task_id = '${taskId}'`,
      ],
      seq: 3,
    },
    'a result put out of shape in its row': {
      sql: ({ taskId }) => [`update operation set result = '5' where task_id = '${taskId}'`],
      seq: 3,
    },
    'data that is no JSON': {
      sql: ({ taskId }) => [`update audit set data = 'gone' where task_id = '${taskId}' and seq = 1`],
      seq: 1,
    },
  };

  test.each(Object.entries(forgeries))('[S10.1] %s is named by task and number', async (_, { sql, seq }) => {
    const forged = await fixture.openPlace(kind);
    try {
      const work = await fixture.reserved(forged.ledger);
      const claim = await fixture.claimed(forged.ledger, work);
      await forged.ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
      await fixture.reserved(forged.ledger);
      await withoutTriggers(forged, sql(work));
      const broken = { ok: false, taskId: work.taskId, seq };
      expect(await forged.ledger.verifyAudit()).toMatchObject(broken);
      expect(await forged.ledger.verifyAudit({ taskId: work.taskId })).toMatchObject(broken);
    } finally {
      await forged.close();
    }
  });

  test('[S10.1] a chain whose head is gone is named', async () => {
    const forged = await fixture.openPlace(kind);
    try {
      const work = await fixture.reserved(forged.ledger);
      await withoutTriggers(forged, [
        `delete from audit where task_id = '${work.taskId}'`,
        `delete from audit_head where task_id = '${work.taskId}'`,
      ]);
      expect(await forged.ledger.verifyAudit()).toMatchObject({ ok: false, taskId: work.taskId, seq: 1 });
    } finally {
      await forged.close();
    }
  });

  test('[S10.1] [S10.4] more chains than fit into one read are all verified, and exported one at a time', async () => {
    const many = await fixture.openPlace(kind);
    try {
      const works: Work[] = [];
      for (let index = 0; index < 450; index += 1) works.push(await fixture.reserved(many.ledger));
      expect(await many.ledger.verifyAudit()).toEqual({ ok: true, tasks: 450, entries: 450 });
      const chains: string[][] = [];
      for await (const chain of many.ledger.auditChains('acme'))
        chains.push([...new Set(chain.map(({ taskId }) => taskId))]);
      expect(chains.every((tasks) => tasks.length === 1)).toBe(true);
      expect(chains.flat().sort()).toEqual(works.map(({ taskId }) => taskId).sort());
      const last = works
        .map(({ taskId }) => taskId)
        .sort()
        .at(-1) as string;
      await withoutTriggers(many, [`update audit set type = 'x' where task_id = '${last}'`]);
      expect(await many.ledger.verifyAudit()).toMatchObject({ ok: false, taskId: last });
      expect(await many.ledger.audit({ tenant: 'acme', limit: 120 })).toHaveLength(120);
    } finally {
      await many.close();
    }
  }, 60_000);

  test('[S10.1] operations of one task share its chain, at one moment and through two connections', async () => {
    const taskId = `task-${fixture.freshKey()}`;
    const other = await place.another();
    const works: Work[] = [];
    for (let index = 0; index < 6; index += 1) works.push(await fixture.reserved(place.ledger, { taskId }));
    const run = async (ledger: Place['ledger'], work: Work) => {
      for (let attempt = 1; attempt <= 5; attempt += 1) {
        await ledger.release(await fixture.claimed(ledger, work, attempt), fixture.NOT_SENT);
      }
      const claim = await fixture.claimed(ledger, work, 6);
      await ledger.commit(claim, fixture.RESULT, { verified: true, how: 'executed', end: null });
    };
    await Promise.all(works.map((work, index) => run(index % 2 ? other : place.ledger, work)));
    await Promise.all([place.ledger, other].map((ledger) => ledger.recordEnd(taskId, fixture.COMPLETED)));
    expect(await place.ledger.verifyAudit({ taskId })).toEqual({
      ok: true,
      tasks: 1,
      entries: 6 * (1 + 12 + 1),
    });
    for (const work of works)
      expect(await fixture.rowOf(place.ledger, work)).toMatchObject({ end: fixture.COMPLETED });
  });

  test('[S10.3] notes ride in the transaction of the change, before it, with the journal’s own time', async () => {
    const work = await fixture.reserved(place.ledger);
    await place.ledger.claim(fixture.claimRequest(work, 1, { notes: [NOTE] }));
    const entries = await place.ledger.audit(work);
    expect(entries.map(({ type }) => type)).toEqual([
      'operation.reserved',
      'cancel_requested',
      'operation.claimed',
    ]);
    expect(entries[1]?.data).toEqual({ seq: 4, by: 'ada', journaledAt: '2025-06-15T15:06:40.123Z' });
  });

  test('[S10.3] notes sent again are written once, and kept even where the claim is not granted', async () => {
    const work = await fixture.reserved(place.ledger);
    const later = { ...NOTE, data: { seq: 5, by: 'ada' } };
    await place.ledger.claim(fixture.claimRequest(work, 2, { notes: [NOTE] }));
    await place.ledger.claim(fixture.claimRequest(work, 1, { notes: [NOTE, later] }));
    await place.ledger.claim(fixture.claimRequest(work, 2, { notes: [NOTE, later] }));
    expect((await fixture.auditTypes(place.ledger, work)).filter((type) => type === NOTE.type)).toHaveLength(
      2,
    );
  });

  test('[S10.3] notes can be flushed by themselves, for a task without an operation too', async () => {
    const work = await fixture.reserved(place.ledger);
    await place.ledger.appendAudit({ ...work, tenant: 'acme', notes: [NOTE, NOTE] });
    expect(await fixture.auditTypes(place.ledger, work)).toEqual(['operation.reserved', NOTE.type]);
    const about = { taskId: `task-${fixture.freshKey()}`, operationId: 'op_unknown', tenant: 'acme' };
    await place.ledger.appendAudit({ ...about, notes: [NOTE] });
    await place.ledger.appendAudit({ ...about, notes: [] });
    expect(await place.ledger.audit(about)).toMatchObject([
      { seq: 1, operationId: 'op_unknown', type: NOTE.type },
    ]);
    expect(await place.ledger.verifyAudit(about)).toEqual({ ok: true, tasks: 1, entries: 1 });
  });

  test('[S6.5] an alert that comes with notes is there once, however often it is sent; the next of its kind is another', async () => {
    const work = await fixture.reserved(place.ledger);
    const about = { ...work, tenant: 'acme', action: 'transfer' };
    const alert = {
      ...about,
      type: 'approval_reminder',
      message: 'still waits',
      data: { callId: 'action#1', at: 1 },
    } as const;
    for (const at of [1, 1, 2])
      await place.ledger.appendAudit({
        ...about,
        notes: [NOTE],
        alert: { ...alert, data: { ...alert.data, at } },
      });
    const alerts = await place.ledger.alerts({ tenant: 'acme', taskId: work.taskId });
    expect(alerts.map(({ data }) => data['at']).sort()).toEqual([1, 2]);
  });

  test('[S10.4] a tenant’s export is its own, newest task first, chains whole', async () => {
    const principal = { ...fixture.PRINCIPAL, tenant: `t-${fixture.freshKey()}` };
    const first = await fixture.reserved(place.ledger, { principal });
    await fixture.claimed(place.ledger, first);
    await place.pass(10);
    const second = await fixture.reserved(place.ledger, { principal });
    const entries = await place.ledger.audit({ tenant: principal.tenant });
    expect(new Set(entries.map(({ tenant }) => tenant))).toEqual(new Set([principal.tenant]));
    expect(entries.filter(({ taskId }) => taskId === first.taskId).map(({ seq }) => seq)).toEqual([1, 2]);
    expect(entries.map(({ taskId }) => taskId)).toContain(second.taskId);
  });
});

/** RFC 8785 written out for this shape: members by code unit, as docs/ledger.md says. */
function byHand(previous: string, { at, data, operationId, seq, taskId, tenant, type }: AuditEntry): string {
  const text = JSON.stringify(ordered({ at, data, operationId, seq, taskId, tenant, type }));
  return createHash('sha256').update(`${previous}\n${text}`).digest('hex');
}

function ordered(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(ordered);
  if (typeof value !== 'object' || value === null) return value;
  const entries = Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1));
  return Object.fromEntries(entries.map(([key, member]) => [key, ordered(member)]));
}

/** As somebody would who owns the database. */
async function withoutTriggers(place: Place, statements: string[]): Promise<void> {
  const off =
    place.ledger.kind === 'sqlite'
      ? ['audit_no_update', 'audit_no_delete'].map((name) => `drop trigger ${name}`)
      : ['alter table audit disable trigger all'];
  for (const statement of [...off, ...statements]) await place.raw(statement);
}
