// S2: every method from every state. Either the change is in the table of transitions.ts, and row and audit change in
// one transaction, or nothing changes.
import { AssertionError } from 'node:assert';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { rollbackOperationId } from '../../src/contract/ids.ts';
import type { AuditEntry, Ledger, OperationRow, RowState } from '../../src/ledger/ledger.ts';
import { EVERY_STATE, TRANSITIONS, assertTransition } from '../../src/ledger/transitions.ts';
import type { Claim } from '../../src/task/claim.ts';
import * as fixture from './ledger-fixture.ts';
import type { Place, Work } from './ledger-fixture.ts';

const COMMIT = { verified: true, how: 'executed', end: null } as const;

/** Brings a new operation into each state by the shortest way. */
const WAYS: Record<RowState, (ledger: Ledger, work: Work) => Promise<unknown>> = {
  reserved: () => Promise.resolve(),
  in_flight: (ledger, work) => fixture.claimed(ledger, work),
  applied: async (ledger, work) =>
    ledger.storeApplied(await fixture.claimed(ledger, work), fixture.RESULT, 'executed'),
  committed: async (ledger, work) =>
    ledger.commit(await fixture.claimed(ledger, work), fixture.RESULT, COMMIT),
  refused: (ledger, work) => ledger.refuse({ ...work, attempt: 1, notes: [] }, 'no', fixture.REFUSED),
  released: async (ledger, work) => ledger.release(await fixture.claimed(ledger, work), fixture.NOT_SENT),
  failed: async (ledger, work) =>
    ledger.fail(await fixture.claimed(ledger, work), fixture.NOT_SENT, fixture.FAILED),
  rolling_back: async (ledger, work) =>
    ledger.mismatched(await fixture.claimed(ledger, work), fixture.RESULT, 'no', fixture.alertAbout(work)),
  rolled_back: async (ledger, work) => {
    await WAYS.rolling_back(ledger, work);
    const claim = await fixture.rollbackClaimed(ledger, work, 2);
    await ledger.finishRollback(claim, work.operationId, null, fixture.ROLLED_BACK);
  },
  attention: async (ledger, work) =>
    ledger.raiseAttention(await fixture.claimed(ledger, work), fixture.IN_DOUBT, fixture.alertAbout(work)),
  abandoned: async (ledger, work) => {
    await WAYS.attention(ledger, work);
    const resolution = { as: 'abandoned', by: 'eve' } as const;
    await ledger.resolve({ ...work, attempt: 1, resolution, end: fixture.ABANDONED, notes: [] });
  },
};

async function attentionAboutRollback(ledger: Ledger, work: Work): Promise<void> {
  await WAYS.rolling_back(ledger, work);
  const claim = await fixture.rollbackClaimed(ledger, work, 2);
  await ledger.rollbackAttention(claim, work.operationId, fixture.IN_DOUBT, fixture.alertAbout(work));
}

/** More ways into a state, where how it was entered matters. */
const VARIANTS: Record<string, (ledger: Ledger, work: Work) => Promise<unknown>> = {
  ...WAYS,
  'reserved and ended': (ledger, work) =>
    ledger.closeTask({ ...work, attempt: 1, end: fixture.CANCELLED, notes: [] }),
  'reserved under a claim': (ledger, work) => fixture.claimed(ledger, work, 1, { executing: false }),
  'released under a claim': async (ledger, work) => {
    await WAYS.released(ledger, work);
    await fixture.claimed(ledger, work, 2, { executing: false });
  },
  'released and ended': async (ledger, work) => {
    await WAYS.released(ledger, work);
    await ledger.closeTask({ ...work, attempt: 1, end: fixture.CANCELLED, notes: [] });
  },
  'committed and ended': async (ledger, work) => {
    await WAYS.committed(ledger, work);
    await ledger.recordEnd(work.taskId, fixture.COMPLETED);
  },
  'in_flight of a recovered task': async (ledger, work) => {
    await WAYS.in_flight(ledger, work);
    await ledger.recover(work.operationId, work.taskId);
  },
  'rolling_back with a rollback in flight': async (ledger, work) => {
    await WAYS.rolling_back(ledger, work);
    await fixture.rollbackClaimed(ledger, work, 2);
  },
  'rolling_back with a rollback released': async (ledger, work) => {
    await WAYS.rolling_back(ledger, work);
    await ledger.releaseRollback(await fixture.rollbackClaimed(ledger, work, 2), fixture.NOT_SENT);
  },
  'attention about a rollback': attentionAboutRollback,
  'rolled_back without an end': async (ledger, work) => {
    await attentionAboutRollback(ledger, work);
    await ledger.resolve({
      ...work,
      attempt: 2,
      resolution: { as: 'not_applied', by: 'eve' },
      end: null,
      notes: [],
    });
  },
  'abandoned without an end': async (ledger, work) => {
    await WAYS.attention(ledger, work);
    await ledger.resolve({
      ...work,
      attempt: 2,
      resolution: { as: 'abandoned', by: 'eve' },
      end: null,
      notes: [],
    });
  },
};

/** What a method is driven with: the row’s own place and claim, or an older or newer one. */
interface Asker {
  work: Work;
  claim: Claim;
  rollback: Claim;
}

type Drive = (ledger: Ledger, asker: Asker) => Promise<unknown>;

const METHODS: Record<string, Drive> = {
  reserve: async (ledger, { work }) => {
    const row = await fixture.rowOf(ledger, work);
    return ledger.reserve(fixture.reservation(row.key, { fingerprint: row.fingerprint }));
  },
  'reserve with other arguments': async (ledger, { work }) => {
    const row = await fixture.rowOf(ledger, work);
    return ledger.reserve(fixture.reservation(row.key, { fingerprint: { sent: 'x', input: 'y' } }));
  },
  claim: (ledger, { work, claim }) => ledger.claim(fixture.claimRequest(work, claim.attempt)),
  'claim to reconcile': (ledger, { work, claim }) =>
    ledger.claim(fixture.claimRequest(work, claim.attempt, { executing: false })),
  intend: (ledger, { claim }) => ledger.intend(claim, { claimMs: 1_000, attemptMs: 1_000 }),
  owns: (ledger, { claim }) => ledger.owns(claim),
  refuse: (ledger, { claim }) => ledger.refuse({ claim }, 'no', fixture.REFUSED),
  'refuse without a claim': (ledger, { work, claim }) =>
    ledger.refuse({ ...work, attempt: claim.attempt, notes: [] }, 'no', fixture.REFUSED),
  release: (ledger, { claim }) => ledger.release(claim, fixture.NOT_SENT),
  fail: (ledger, { claim }) => ledger.fail(claim, fixture.NOT_SENT, fixture.FAILED),
  storeApplied: (ledger, { claim }) =>
    ledger.storeApplied(claim, { kind: 'inline', value: 'seen again' }, 'looked_up'),
  commit: (ledger, { claim }) => ledger.commit(claim, fixture.RESULT, { ...COMMIT, end: fixture.COMPLETED }),
  mismatched: (ledger, { claim, work }) =>
    ledger.mismatched(claim, fixture.RESULT, 'no', fixture.alertAbout(work)),
  raiseAttention: (ledger, { claim, work }) =>
    ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work)),
  claimRollback: (ledger, { work, claim }) =>
    ledger.claimRollback(fixture.rollbackRequest(work, claim.attempt)),
  finishRollback: (ledger, { work, rollback }) =>
    ledger.finishRollback(rollback, work.operationId, null, fixture.ROLLED_BACK),
  releaseRollback: (ledger, { rollback }) => ledger.releaseRollback(rollback, fixture.NOT_SENT),
  rollbackAttention: (ledger, { work, rollback }) =>
    ledger.rollbackAttention(rollback, work.operationId, fixture.IN_DOUBT, fixture.alertAbout(work)),
  closeTask: (ledger, { work, claim }) =>
    ledger.closeTask({ ...work, attempt: claim.attempt, end: fixture.CANCELLED, notes: [] }),
  ...Object.fromEntries(
    (['applied', 'not_applied', 'abandoned'] as const).map((as): [string, Drive] => [
      `resolve as ${as}`,
      (ledger, { work, claim }) => {
        const resolution = { as, by: 'eve' };
        return ledger.resolve({ ...work, attempt: claim.attempt, resolution, end: null, notes: [] });
      },
    ]),
  ),
  recordLate: (ledger, { work, claim }) => ledger.recordLate(claim, { late: true }, fixture.alertAbout(work)),
  recover: (ledger, { work }) => ledger.recover(work.operationId, work.taskId),
  recordEnd: (ledger, { work }) => ledger.recordEnd(work.taskId, fixture.COMPLETED),
  'reserveStep of a procedure': async (ledger, { work }) => {
    // In any other state a row is no procedure's, or its steps change nothing about it.
    if ((await fixture.rowOf(ledger, work)).state !== 'reserved') return undefined;
    return ledger.reserveStep({
      parent: work,
      reservation: fixture.reservation(`step of ${work.operationId}`),
      notes: [],
    });
  },
  'reserveStep of a step': async (ledger, { work }) => {
    const row = await fixture.rowOf(ledger, work);
    const parent = await fixture.reserved(ledger);
    const reservation = fixture.reservation(row.key, { fingerprint: row.fingerprint });
    return ledger.reserveStep({ parent, reservation, notes: [] });
  },
  ...Object.fromEntries(
    [fixture.CANCELLED, fixture.COMPLETED, fixture.ROLLED_BACK, fixture.ABANDONED].map(
      (end): [string, Drive] => [
        `endProcedure with effect ${end.effect}`,
        (ledger, { work }) => ledger.endProcedure({ ...work, end, result: null, notes: [] }),
      ],
    ),
  ),
};

const ASKERS: Record<string, (own: Asker) => Asker> = {
  current: (own) => own,
  older: ({ work, claim, rollback }) => ({
    work,
    claim: { ...claim, attempt: claim.attempt - 1, generation: claim.generation - 1 },
    rollback: { ...rollback, attempt: rollback.attempt - 1, generation: rollback.generation - 1 },
  }),
  newer: ({ work, claim, rollback }) => ({
    work,
    claim: { ...claim, attempt: claim.attempt + 1, generation: claim.generation + 1 },
    rollback: { ...rollback, attempt: rollback.attempt + 1, generation: rollback.generation + 1 },
  }),
  superseded: ({ work, claim, rollback }) => {
    const before = { taskId: 'task_before', ordinal: work.ordinal - 1 };
    return {
      work: { ...work, ...before },
      claim: { ...claim, ...before },
      rollback: { ...rollback, ...before },
    };
  },
};

interface Seen {
  rows: (OperationRow | null)[];
  audit: AuditEntry[];
  alerts: number;
}

describe.each(fixture.STORES)('transitions on %s', (kind) => {
  let place: Place;
  beforeAll(async () => {
    place = await fixture.openPlace(kind);
  });
  afterAll(() => place.close());

  async function askerOf(work: Work): Promise<Asker> {
    const row = await fixture.rowOf(place.ledger, work);
    const rollback = await place.ledger.find(rollbackOperationId(work.operationId));
    const claimOf = ({ operationId, taskId, ordinal, attempt, generation }: OperationRow): Claim => ({
      operationId,
      taskId,
      ordinal,
      attempt,
      generation,
      claimedUntil: 0,
    });
    const own = claimOf(row);
    return {
      work: { operationId: work.operationId, taskId: row.taskId, ordinal: row.ordinal },
      claim: own,
      rollback: rollback ? claimOf(rollback) : { ...own, operationId: rollbackOperationId(work.operationId) },
    };
  }

  /** The operation, its rollback, and what its tasks' chains and the outbox hold about them. */
  async function look({ operationId, taskId }: Work): Promise<Seen> {
    const row = await place.ledger.find(operationId);
    const rows = [row, await place.ledger.find(rollbackOperationId(operationId))];
    const audit = await place.ledger.audit({ taskId });
    if (row && row.taskId !== taskId) audit.push(...(await place.ledger.audit({ taskId: row.taskId })));
    const alerts = await place.ledger.alerts({ tenant: fixture.PRINCIPAL.tenant, taskId });
    return { rows, audit, alerts: alerts.length };
  }

  /** What the audit says happened between two looks, in the table's words. */
  const entriesSince = (before: Seen, after: Seen) =>
    after.audit.filter((entry) => !before.audit.some((known) => known.hash === entry.hash));

  function expectNothing(before: Seen, after: Seen): void {
    expect(after).toEqual(before);
  }

  function expectTransition(before: Seen, after: Seen): void {
    const changed = after.rows.filter(
      (row, index) => JSON.stringify(row) !== JSON.stringify(before.rows[index]),
    );
    for (const row of changed) {
      const from = before.rows.find((old) => old?.operationId === row?.operationId)?.state ?? 'none';
      const entries = entriesSince(before, after).filter(
        ({ operationId, data }) => operationId === row?.operationId && data['to'] === row?.state,
      );
      const entry = entries.find(({ data }) => data['from'] === from);
      expect(entry, `an audit entry for ${from} → ${row?.state}`).toBeDefined();
      expect(TRANSITIONS).toContainEqual(
        expect.objectContaining({ by: entry?.data['by'], from, to: row?.state }),
      );
    }
    expect(changed.length).toBeGreaterThan(0);
  }

  async function build(
    way: (ledger: Ledger, work: Work) => Promise<unknown>,
  ): Promise<{ start: Work; seen: Seen }> {
    const start = await fixture.reserved(place.ledger);
    await way(place.ledger, start);
    return { start, seen: await look(start) };
  }

  for (const [variant, way] of Object.entries(VARIANTS)) {
    test(`[S2] from ${variant}, every method takes a transition of the table or changes nothing`, async () => {
      let { start, seen } = await build(way);
      for (const [name, drive] of Object.entries(METHODS)) {
        for (const [asked, as] of Object.entries(ASKERS)) {
          const answer = await drive(place.ledger, as(await askerOf(start))).catch((error: unknown) => error);
          // Asking about a rollback that was never claimed is a defect of the caller.
          if (answer instanceof Error && !(answer instanceof AssertionError)) throw answer;
          const after = await look(start);
          if (JSON.stringify(after) === JSON.stringify(seen)) continue;
          try {
            expectTransition(seen, after);
          } catch (error) {
            throw new Error(`${name} by a ${asked} asker`, { cause: error });
          }
          const mayChange = ASKS_WITHOUT_FENCE.has(name) || asked === 'current' || asked === 'newer';
          expect(mayChange, `${name} by a ${asked} asker changes something`).toBe(true);
          ({ start, seen } = await build(way));
        }
      }
      expect(await place.ledger.verifyAudit()).toMatchObject({ ok: true });
    }, 120_000);
  }

  async function deniedThenReported(): Promise<void> {
    const { ledger } = place;
    const work = await fixture.reserved(ledger, { effect: 'unsafe' });
    const claim = await fixture.claimed(ledger, work);
    await ledger.raiseAttention(claim, fixture.IN_DOUBT, fixture.alertAbout(work));
    const resolution = { as: 'not_applied', by: 'eve' } as const;
    await ledger.resolve({ ...work, attempt: 1, resolution, end: null, notes: [] });
    const late = { kind: 'applied', result: { kind: 'inline', value: 1 } };
    await ledger.recordLate(claim, late, fixture.alertAbout(work));
  }

  test('[S10.2] when the audit can’t be written, no method changes the row', async () => {
    const drives: [RowState, string][] = [
      ['reserved', 'claim'],
      ['reserved', 'refuse without a claim'],
      ['reserved', 'closeTask'],
      ['in_flight', 'intend'],
      ['in_flight', 'release'],
      ['in_flight', 'fail'],
      ['in_flight', 'storeApplied'],
      ['in_flight', 'mismatched'],
      ['in_flight', 'raiseAttention'],
      ['in_flight', 'recover'],
      ['in_flight', 'recordLate'],
      ['applied', 'commit'],
      ['committed', 'recordEnd'],
      ['rolling_back', 'claimRollback'],
      ['attention', 'resolve as applied'],
      ['refused', 'reserve'],
    ];
    for (const [state, method] of drives) {
      const work = await fixture.reserved(place.ledger);
      await WAYS[state](place.ledger, work);
      const own = await askerOf(work);
      const asker = method === 'claimRollback' ? (ASKERS['newer'] as (own: Asker) => Asker)(own) : own;
      const before = await look(work);
      await refuseAudit(place, true);
      try {
        const drive = METHODS[method] as Drive;
        await expect(drive(place.ledger, asker), method).rejects.toMatchObject({
          code: 'ledger_unavailable',
        });
      } finally {
        await refuseAudit(place, false);
      }
      expectNothing(before, await look(work));
    }
  });

  test('[S2] every transition of the table was taken, and no other', async () => {
    await deniedThenReported();
    const entries = (await place.raw(`select data from audit where type like 'operation.%'`)).map(
      ({ data }) => JSON.parse(String(data)) as { by?: string; from?: string; to?: string },
    );
    const taken = new Set(
      entries.filter(({ by }) => by !== undefined).map(({ by, from, to }) => `${by} ${from} ${to}`),
    );
    expect([...taken].sort()).toEqual(
      [...new Set(TRANSITIONS.map(({ by, from, to }) => `${by} ${from} ${to}`))].sort(),
    );
  });

  test('[S10.2] when the row can’t be written, no entry is appended', async () => {
    const work = await fixture.reserved(place.ledger);
    const before = await look(work);
    await place.raw(
      kind === 'sqlite'
        ? `create trigger no_claim before update on operation begin select raise(abort, 'no'); end`
        : `alter table operation add constraint no_claim check (attempt < 1) not valid`,
    );
    try {
      await expect(place.ledger.claim(fixture.claimRequest(work, 1))).rejects.toMatchObject({
        code: 'ledger_unavailable',
      });
    } finally {
      await place.raw(
        kind === 'sqlite' ? 'drop trigger no_claim' : 'alter table operation drop constraint no_claim',
      );
    }
    expectNothing(before, await look(work));
  });
});

/** These ask by operation, task or key alone, which no fence guards. */
const ASKS_WITHOUT_FENCE = new Set([
  'reserve',
  'reserveStep of a step',
  // By task and ordinal: it is no attempt, and its steps' are fenced by their own rows.
  ...['none', 'applied', 'rolled_back', 'unknown'].map((effect) => `endProcedure with effect ${effect}`),
  'reserveStep of a procedure',
  'reserve with other arguments',
  'recover',
  'recordEnd',
  'recordLate',
  'closeTask',
  'resolve as applied',
  'resolve as not_applied',
  'resolve as abandoned',
]);

async function refuseAudit({ raw, ledger }: Place, refused: boolean): Promise<void> {
  if (ledger.kind === 'sqlite') {
    await raw(
      refused
        ? `create trigger audit_down before insert on audit begin select raise(abort, 'no'); end`
        : 'drop trigger audit_down',
    );
  } else {
    await raw(
      refused
        ? 'alter table audit add constraint audit_down check (seq < 0) not valid'
        : 'alter table audit drop constraint audit_down',
    );
  }
}

describe('the table of transitions', () => {
  test('[S2] names every state, and no way out of what spends the key for good', () => {
    expect(new Set(TRANSITIONS.flatMap(({ from, to }) => [from, to]))).toEqual(
      new Set(['none', ...EVERY_STATE]),
    );
    for (const spent of ['failed', 'rolled_back', 'abandoned'] as const) {
      const ways = TRANSITIONS.filter(({ from, to }) => from === spent && to !== spent);
      expect(ways, spent).toEqual([]);
    }
  });

  test('[S2] leaves committed only for a rollback', () => {
    const ways = TRANSITIONS.filter(({ from, to }) => from === 'committed' && to !== 'committed');
    expect(ways.map(({ by, to }) => `${by} ${to}`)).toEqual(['claimRollback rolling_back']);
  });

  test('[S2] crashes on any other', () => {
    expect(() => assertTransition('commit', 'released', 'committed')).toThrow(AssertionError);
    expect(() => assertTransition('commit', 'in_flight', 'committed')).not.toThrow();
  });
});
