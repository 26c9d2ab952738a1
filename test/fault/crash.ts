/**
 * One crash: operations brought to one point in a worker, the worker killed there, a standby let loose, and the target
 * asked how often each effect took place.
 */
import { breaksPromise } from './broken-promise.ts';
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
  /** Operations for each cell, killed at once; default {@link OPERATIONS}. */
  operations?: number;
}

export const DISPATCHED: readonly EffectClass[] = [
  { name: 'safe', action: 'target_safe', args: { resourceId: 'r0' } },
  { name: 'conditional', action: 'target_conditional', args: { value: 'v' } },
  { name: 'unsafe, can be asked', action: 'target_unsafe_lookup', args: { value: 'v' } },
  { name: 'unsafe, can’t be asked', action: 'target_unsafe', args: { value: 'v' } },
];
export const TRANSACTIONAL: readonly EffectClass[] = [
  { name: 'transactional', action: 'ledger_row', args: { value: 'v' }, isTransactional: true, operations: 1 },
];
export const INLINE: readonly EffectClass[] = [
  { name: 'safe, inline', action: 'target_inline_safe', args: { resourceId: 'r0' } },
  { name: 'conditional, inline', action: 'target_inline', args: { value: 'v' } },
];

export const POINTS: Record<
  Exclude<CrashPoint, 'before_answer' | 'after_reserve' | 'before_sending' | 'before_end'>,
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

interface Begun {
  effectClass: EffectClass;
  key: string;
  taskId: string;
}

/** An operation is there within moments. */
const ARRIVAL_MS = 20_000;

/** Brings operations of each class to the point and kills the worker there. */
async function killAtPoint(
  { system, store, point, protocol = 'holdfast' }: Crash,
  classes: readonly EffectClass[],
  taskQueue: string,
): Promise<Begun[]> {
  const client = await system.client(store, taskQueue);
  const victim = await system.worker(store, { taskQueue, stop: { point }, protocol }).ready();
  const calls = classes.flatMap((effectClass) =>
    Array.from({ length: effectClass.operations ?? OPERATIONS }, () => ({
      effectClass,
      key: unique(effectClass.action),
    })),
  );
  const begun = await Promise.all(
    calls.map(async ({ effectClass, key }) => {
      const { action, args } = effectClass;
      const { taskId } = await client.start({ action, args, key, principal: PRINCIPAL });
      return { effectClass, key, taskId };
    }),
  );
  try {
    await victim.reached(calls.length, { patienceMs: ARRIVAL_MS });
  } finally {
    await victim.kill();
  }
  return begun;
}

/** On a machine under load something else than the kill may interfere: then the whole is done again, with other keys. */
const RUNS_MAX = 3;

/**
 * The fates of each class's operations, by class name. A run that was disturbed counts where a promise is broken: no
 * disturbance excuses a second effect, or a report that the target's count belies.
 */
export async function crash(parts: Crash, classes: readonly EffectClass[]): Promise<Map<string, Fate[]>> {
  for (let runs = 1; ; runs += 1) {
    const run = await crashOnce(parts, classes).catch((error: unknown) => {
      if (runs === RUNS_MAX) throw error;
      return null; // they did not all get to the point
    });
    if (run === null) continue;
    const { fates, isDisturbed } = run;
    const isBroken = classes.some((effectClass) => fates.get(effectClass.name)?.some(breaksPromise));
    if (!isDisturbed || isBroken || runs === RUNS_MAX) return fates;
  }
}

async function crashOnce(parts: Crash, classes: readonly EffectClass[]) {
  const { system, store, standby, point } = parts;
  const taskQueue = unique(`crash-${point}`);
  const begun = await killAtPoint(parts, classes, taskQueue);
  const killedAt = Date.now();
  await standby.order({ order: 'run', taskQueue });
  const client = await system.client(store, taskQueue);
  const ends = await Promise.all(
    begun.map(async ({ effectClass, key, taskId }) => {
      const { operationId, status, effect } = await outcomeOf(client, taskId);
      const recoveredMs = Date.now() - killedAt;
      return { effectClass, end: { taskId, operationId, key, status, effect, recoveredMs } };
    }),
  );
  const fates = new Map<string, Fate[]>(classes.map(({ name }) => [name, []]));
  let isDisturbed = false;
  for (const { effectClass, end } of ends) {
    isDisturbed ||= await wasDisturbed(parts, end.taskId);
    const effects = await effectsOf(system, store, effectClass, end.operationId);
    fates.get(effectClass.name)?.push({ ...end, effects });
  }
  return { fates, isDisturbed };
}

/** An attempt was lost besides the one we killed, or a handler took longer than its deadline. */
async function wasDisturbed({ system, point }: Crash, taskId: string): Promise<boolean> {
  const { attempts } = await system.state(taskId);
  const lost = attempts.filter(({ outcome }) => outcome === 'lost').length;
  const isInline = attempts[0]?.inline === true;
  const isSlow = attempts.some(({ failure }) => failure?.message.includes('gave no answer within') === true);
  return isSlow || lost > (isInline || point === 'after_activity' ? 0 : 1);
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

/** Runs what it is given, at most `width` at a time. */
export function atMost(width: number) {
  const waiting: (() => void)[] = [];
  let free = width;
  return async <Result>(run: () => Promise<Result>): Promise<Result> => {
    if (free === 0) await new Promise<void>((resolve) => waiting.push(resolve));
    else free -= 1;
    try {
      return await run();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else free += 1;
    }
  };
}

/** Runs what is asked for once, at most `width` at a time. */
export function sharedRuns<Name extends string, Result>(width: number, run: (name: Name) => Promise<Result>) {
  const runs = new Map<Name, Promise<Result>>();
  const bounded = atMost(width);
  return (name: Name): Promise<Result> => {
    const known = runs.get(name) ?? bounded(() => run(name));
    runs.set(name, known);
    return known;
  };
}
