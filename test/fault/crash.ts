/**
 * One crash: operations brought to one point in a worker, the worker killed there, a standby let loose, and the target
 * asked how often each effect took place.
 */
import type { CrashPoint } from '../support/child-messages.ts';
import type { TestChild } from '../support/child-process.ts';
import { countEffectRows } from '../support/fault-actions.ts';
import { PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { FaultSystem, Store } from '../support/fault-system.ts';

/** Operations for each cell: each has its own key, and all of them are killed at once. */
export const OPERATIONS = 3;

export interface EffectClass {
  name: string;
  action: string;
  args: Record<string, string>;
  /** Its effect lives in the ledger's own database, so that is where it is counted. */
  isTransactional?: boolean;
}

export const DISPATCHED: readonly EffectClass[] = [
  { name: 'safe', action: 'target_safe', args: { resourceId: 'r0' } },
  { name: 'conditional', action: 'target_conditional', args: { value: 'v' } },
  { name: 'unsafe, can be asked', action: 'target_unsafe_lookup', args: { value: 'v' } },
  { name: 'unsafe, can’t be asked', action: 'target_unsafe', args: { value: 'v' } },
];
export const TRANSACTIONAL: readonly EffectClass[] = [
  { name: 'transactional', action: 'ledger_row', args: { value: 'v' }, isTransactional: true },
];
export const INLINE: readonly EffectClass[] = [
  { name: 'safe, inline', action: 'target_inline_safe', args: { resourceId: 'r0' } },
  { name: 'conditional, inline', action: 'target_inline', args: { value: 'v' } },
];

export const POINTS: Record<
  Exclude<CrashPoint, 'before_answer' | 'after_reserve' | 'before_sending'>,
  string
> = {
  before_claim: 'before the claim',
  after_intent: 'after the intent',
  after_effect: 'after the effect',
  after_verify: 'after verify',
  after_commit: 'after the ledger’s commit',
  after_activity: 'after the activity’s completion',
};
export type WorkerPoint = keyof typeof POINTS;
export const WORKER_POINTS = Object.keys(POINTS) as WorkerPoint[];

/** What became of one operation. */
export interface Fate {
  operationId: string;
  taskId: string;
  key: string;
  /** By the target's own count. */
  effects: number;
  status: string;
  effect: string | null;
  /** From the kill to the outcome. */
  recoveredMs: number;
}

interface Crash {
  system: FaultSystem;
  store: Store;
  standby: TestChild;
  point: WorkerPoint;
  protocol?: 'holdfast' | 'effect_first';
}

/** The fates of `count` operations of each class, by class name. */
export async function crash(
  { system, store, standby, point, protocol = 'holdfast' }: Crash,
  classes: readonly EffectClass[],
  count = OPERATIONS,
): Promise<Map<string, Fate[]>> {
  const taskQueue = unique(`crash-${point}`);
  const client = await system.client(store, taskQueue);
  const victim = await system.worker(store, { taskQueue, stop: { point }, protocol }).ready();
  const calls = classes.flatMap((effectClass) =>
    Array.from({ length: count }, () => ({ effectClass, key: unique(effectClass.action) })),
  );
  const started = await Promise.all(
    calls.map(async ({ effectClass, key }) => {
      const { action, args } = effectClass;
      return { effectClass, key, task: await client.start({ action, args, key, principal: PRINCIPAL }) };
    }),
  );
  await victim.reached(calls.length);
  await victim.kill();
  const killedAt = Date.now();
  await standby.order({ order: 'run', taskQueue });
  const fates = await Promise.all(
    started.map(async ({ effectClass, key, task }) => {
      const { taskId, operationId, status, effect } = await outcomeOf(client, task.taskId);
      const recoveredMs = Date.now() - killedAt;
      return { effectClass, fate: { taskId, operationId, key, status, effect, recoveredMs, effects: 0 } };
    }),
  );
  const byClass = new Map<string, Fate[]>(classes.map(({ name }) => [name, []]));
  for (const { effectClass, fate } of fates) {
    const effects = await effectsOf(system, store, effectClass, fate.operationId);
    byClass.get(effectClass.name)?.push({ ...fate, effects });
  }
  return byClass;
}

export async function effectsOf(
  { target }: FaultSystem,
  { ledger }: Store,
  { isTransactional }: EffectClass,
  operationId: string,
): Promise<number> {
  if (!isTransactional) return target.count(operationId);
  return ledger.transaction((_transitions, tx) => countEffectRows(tx, operationId));
}

/** `1 effect, completed`; one line for each way it went, with how many operations went it. */
export function words(fates: readonly Pick<Fate, 'effects' | 'status'>[]): string {
  const counts = new Map<string, number>();
  for (const { effects, status } of fates) {
    const text = `${effects} effect${effects === 1 ? '' : 's'}, ${status}`;
    counts.set(text, (counts.get(text) ?? 0) + 1);
  }
  return [...counts].map(([text, n]) => (counts.size === 1 ? text : `${n}× ${text}`)).join('; ');
}

/** Runs what is asked for once, at most `width` at a time. */
export function sharedRuns<Name extends string, Result>(width: number, run: (name: Name) => Promise<Result>) {
  const runs = new Map<Name, Promise<Result>>();
  const waiting: (() => void)[] = [];
  let free = width;
  const bounded = async (name: Name): Promise<Result> => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await run(name);
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
  return (name: Name): Promise<Result> => {
    const known = runs.get(name) ?? bounded(name);
    runs.set(name, known);
    return known;
  };
}
