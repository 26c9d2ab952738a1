/**
 * The crash matrix: a worker killed at every point of the protocol, for every effect class, on both stores; then the
 * same kills for the wrong order. The target's own counter says what took place (docs/crash-windows.md).
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { TestChild } from '../support/child-process.ts';
import { FaultSystem, PRINCIPAL } from '../support/fault-system.ts';
import type { Store, StoreKind } from '../support/fault-system.ts';
import {
  DISPATCHED,
  INLINE,
  POINTS,
  TRANSACTIONAL,
  WORKER_POINTS,
  crash,
  sharedRuns,
  words,
} from './crash.ts';
import type { EffectClass, Fate, WorkerPoint } from './crash.ts';
import { recordTable, tableOf } from './crash-windows.ts';

const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];
const MODES = {
  dispatched: DISPATCHED,
  transactional: TRANSACTIONAL,
  inline: INLINE,
  effect_first: DISPATCHED,
};
type Mode = keyof typeof MODES;
/** One kill serves as many classes as can stand at a point together. */
const KILLS = {
  together: [...DISPATCHED, ...INLINE],
  transactional: TRANSACTIONAL,
  effect_first: DISPATCHED,
};
type RunName = `${keyof typeof KILLS} ${StoreKind} ${WorkerPoint}`;

/** The same points, in the order in which the wrong protocol passes them. */
const EFFECT_FIRST_ORDER: readonly (readonly [WorkerPoint, string])[] = [
  ['before_claim', 'before the effect'],
  ['after_effect', 'after the effect, before its intent'],
  ['after_intent', 'after the intent'],
  ['after_verify', POINTS.after_verify],
  ['after_commit', POINTS.after_commit],
  ['after_activity', POINTS.after_activity],
];

/** Most of a cell is waiting for timeouts, so a few at a time; more would be timeouts of the machine's own making. */
const AT_ONCE = 3;

let system: FaultSystem;
const standbys = new Map<string, Promise<TestChild>>();

beforeAll(async () => {
  system = await FaultSystem.open();
});
afterAll(() => system.close());

/** One standby for each store and protocol: up, connected, and taking no work before it is told to. */
function standbyOf(store: Store, protocol: 'holdfast' | 'effect_first'): Promise<TestChild> {
  const name = `${store.kind} ${protocol}`;
  const standby = standbys.get(name) ?? system.worker(store, { protocol }).ready();
  standbys.set(name, standby);
  return standby;
}

const runOf = sharedRuns(AT_ONCE, async (name: RunName) => {
  const [kill, kind, point] = name.split(' ') as [keyof typeof KILLS, StoreKind, WorkerPoint];
  const store = await system.store(kind);
  const protocol = kill === 'effect_first' ? kill : 'holdfast';
  const standby = await standbyOf(store, protocol);
  return crash({ system, store, standby, point, protocol }, KILLS[kill]);
});

function killOf(mode: Mode): keyof typeof KILLS {
  // An open transaction keeps others from getting to their point, and lasts for a second.
  return mode === 'dispatched' || mode === 'inline' ? 'together' : mode;
}

async function fatesOf(
  mode: Mode,
  kind: StoreKind,
  point: WorkerPoint,
  { name }: EffectClass,
): Promise<Fate[]> {
  return (await runOf(`${killOf(mode)} ${kind} ${point}`)).get(name) ?? [];
}

/** What must be true wherever it crashed. */
function promised({ name }: EffectClass, point: WorkerPoint): { effects: number; status: string } {
  if (name.startsWith('safe')) return { effects: 0, status: 'completed' };
  if (name !== 'unsafe, can’t be asked') return { effects: 1, status: 'completed' };
  switch (point) {
    case 'after_intent':
      return { effects: 0, status: 'needs_attention' };
    case 'after_effect':
    case 'after_verify':
      return { effects: 1, status: 'needs_attention' };
    case 'before_claim':
    case 'after_commit':
    case 'after_activity':
      return { effects: 1, status: 'completed' };
    default:
      return point satisfies never;
  }
}

async function assertCell(
  mode: Mode,
  kind: StoreKind,
  point: WorkerPoint,
  effectClass: EffectClass,
): Promise<void> {
  const store = await system.store(kind);
  const fates = await fatesOf(mode, kind, point, effectClass);
  const cell = promised(effectClass, point);
  expect(fates.map(({ effects, status }) => ({ effects, status }))).toEqual(fates.map(() => cell));
  const client = await system.client(store, 'nobody');
  for (const { taskId, key, operationId } of fates) {
    // A worker's death is nobody's business failure (S5.2).
    expect(await system.state(taskId)).toMatchObject({ retriesSpent: 0 });
    const { action, args } = effectClass;
    const again = await client.start({ action, args, key, principal: PRINCIPAL });
    expect(again).toMatchObject({ taskId, operationId, status: cell.status });
    const alerts = await store.ledger.alerts({ tenant: PRINCIPAL.tenant, taskId });
    expect(alerts.map(({ type }) => type)).toEqual(cell.status === 'completed' ? [] : ['needs_attention']);
    expect(await store.ledger.verifyAudit({ taskId })).toMatchObject({ ok: true });
  }
}

/** By class first, so that tests running at once ask for different runs. */
function cellsOf(mode: Mode) {
  return MODES[mode].flatMap((effectClass) =>
    WORKER_POINTS.flatMap((point) =>
      STORES.map((kind) => ({ effectClass, point, kind, name: effectClass.name, where: POINTS[point] })),
    ),
  );
}

describe.concurrent('crash: a worker killed by SIGKILL', () => {
  test.each(cellsOf('dispatched'))(
    '[S2.11] crash $where, $name, on $kind: no operation takes place twice',
    ({ kind, point, effectClass }) => assertCell('dispatched', kind, point, effectClass),
  );

  test.each(cellsOf('transactional'))(
    '[S2.8] [S2.11] crash $where, $name, on $kind: claim, effect and commit stand or fall together',
    ({ kind, point, effectClass }) => assertCell('transactional', kind, point, effectClass),
  );

  test.each(cellsOf('inline'))(
    '[S2.11] [S2.13] crash $where, $name, on $kind: no operation takes place twice',
    ({ kind, point, effectClass }) => assertCell('inline', kind, point, effectClass),
  );

  test.each(cellsOf('effect_first'))(
    'crash $where, $name, on $kind, effect first and intent after: what the wrong order costs',
    async ({ kind, point, effectClass }) => {
      const fates = await fatesOf('effect_first', kind, point, effectClass);
      const isUnsafe = effectClass.name.startsWith('unsafe');
      const effects = effectClass.name === 'safe' ? 0 : isUnsafe && point === 'after_effect' ? 2 : 1;
      expect(fates.map((fate) => ({ effects: fate.effects, status: fate.status }))).toEqual(
        fates.map(() => ({ effects, status: 'completed' })),
      );
    },
  );
});

describe('the measured tables of docs/crash-windows.md', () => {
  const columns = (classes: readonly EffectClass[]) => ['worker killed', ...classes.map(({ name }) => name)];

  /** One row for each point; both stores must agree, else both are shown. */
  async function rowsOf(mode: Mode, classes: readonly EffectClass[]): Promise<string[][]> {
    return Promise.all(
      WORKER_POINTS.map(async (point) => {
        const cells = classes.map(async (effectClass) => {
          const texts = await Promise.all(
            STORES.map(async (kind) => words(await fatesOf(mode, kind, point, effectClass))),
          );
          return new Set(texts).size === 1
            ? String(texts[0])
            : `SQLite: ${texts[0]}; PostgreSQL: ${texts[1]}`;
        });
        return [POINTS[point], ...(await Promise.all(cells))];
      }),
    );
  }

  test('crash: intent first, dispatched', async () => {
    recordTable('dispatched', tableOf(columns(DISPATCHED), await rowsOf('dispatched', DISPATCHED)));
  });

  test('crash: intent first, inline and transactional', async () => {
    const [inline, transactional] = await Promise.all([
      rowsOf('inline', INLINE),
      rowsOf('transactional', TRANSACTIONAL),
    ]);
    const rows = inline.map((row, index) => [...row, ...(transactional[index]?.slice(1) ?? [])]);
    recordTable('inline', tableOf(columns([...INLINE, ...TRANSACTIONAL]), rows));
  });

  test('crash: effect first, intent after', async () => {
    const rows = await rowsOf('effect_first', DISPATCHED);
    const labelled = EFFECT_FIRST_ORDER.map(async ([point, label]) => {
      const row = rows[WORKER_POINTS.indexOf(point)]?.slice(1) ?? [];
      const fates = await Promise.all(STORES.map((kind) => runOf(`effect_first ${kind} ${point}`)));
      const writes = fates.flatMap((byClass) =>
        [...byClass].flatMap(([name, ends]) => (name === 'safe' ? [] : ends)),
      );
      return [label, ...row, `${writes.filter(({ effects }) => effects > 1).length} of ${writes.length}`];
    });
    const head = [...columns(DISPATCHED), 'done twice'];
    recordTable('effect first', tableOf(head, await Promise.all(labelled)));
  });

  test('crash: how long the recovery took', async () => {
    const rows = await Promise.all(
      WORKER_POINTS.map(async (point) => {
        const cells = (['dispatched', 'inline'] as const).flatMap((mode) =>
          STORES.map(async (kind) => {
            const fates = (
              await Promise.all(MODES[mode].map((each) => fatesOf(mode, kind, point, each)))
            ).flat();
            const slowest = Math.max(...fates.map(({ recoveredMs }) => recoveredMs));
            return `${(slowest / 1_000).toFixed(1)} s`;
          }),
        );
        return [POINTS[point], ...(await Promise.all(cells))];
      }),
    );
    const head = [
      'worker killed',
      'dispatched, SQLite',
      'dispatched, PostgreSQL',
      'inline, SQLite',
      'inline, PostgreSQL',
    ];
    recordTable('times', tableOf(head, rows), { isExact: false });
  });
});
