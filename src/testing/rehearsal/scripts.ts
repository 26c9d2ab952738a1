/**
 * What a rehearsal does to one operation: hooks around the user's own handlers, and at the fault points between them.
 *
 * Invariants:
 * 1. Only handlers that exist are wrapped, so that the plan promises what the user's action promises.
 * 2. An operation is found by its own id, by its rollback's, or by its task; one nobody wrote a script for is a programmer
 *    error.
 * 3. Without a hook the real handler runs, and its answer is passed on as it is.
 */
import { rollbackOperationId } from '../../contract/ids.ts';
import type { AnyHandlers } from '../../contract/handlers.ts';
import type { JsonObject } from '../../task/json.ts';
import type { FaultPlace, FaultPoint, FaultPoints } from '../../operation/faults.ts';

export type HandlerName = keyof Required<AnyHandlers>;

export interface HandlerCall {
  /** Which call of this handler for this operation it is, from 1. */
  turn: number;
  signal: AbortSignal;
  /** The user's own handler; with another signal where one is given. */
  real(signal?: AbortSignal): Promise<unknown>;
}

/** Whatever the worker passes by for one operation. */
export type Script = {
  [Name in HandlerName]?: (call: HandlerCall) => Promise<unknown>;
} & {
  /** Throw there: as good as a crash for everything after it. */
  at?(place: FaultPlace): Promise<void>;
};

/** Thrown at a fault point. */
export class RehearsedCrash extends Error {
  constructor({ about, point }: Pick<FaultPlace, 'about' | 'point'>) {
    super(`rehearsed crash of the ${about} ${point}`);
    this.name = 'RehearsedCrash';
  }
}

/** A crash where the operation first gets to that point; the attempts that follow pass it. */
export function crashOnceAt(
  about: FaultPlace['about'],
  point: FaultPoint,
  before?: () => Promise<void>,
): NonNullable<Script['at']> {
  let isDown = false;
  return async (place) => {
    if (isDown || place.about !== about || place.point !== point) return;
    isDown = true;
    await before?.();
    throw new RehearsedCrash(place);
  };
}

/** Something that happens once, where the operation first gets to that point. */
export function onceAt(
  about: FaultPlace['about'],
  point: FaultPoint,
  happens: () => Promise<void>,
): NonNullable<Script['at']> {
  let isOver = false;
  return async (place) => {
    if (isOver || place.about !== about || place.point !== point) return;
    isOver = true;
    await happens();
  };
}

/** One operation's script, and how often each of its handlers was called. */
export interface Part {
  script: Script;
  calls: Partial<Record<HandlerName, number>>;
  /** What its handlers were given, once they were. */
  input?: JsonObject;
  /** How soon a person's gate in a procedure expires; absent: as its policy says. */
  expiresInMs?: number;
  /** What execute was given, the last time. */
  executed?: JsonObject;
}

export class Scripts {
  readonly #parts = new Map<string, Part>();
  readonly #tasks = new Map<string, (operationId: string) => Part>();

  add(operationId: string, part: Part): void {
    this.#parts.set(operationId, part);
    this.#parts.set(rollbackOperationId(operationId), part);
  }

  /** For operations of that task that have no script of their own. */
  addTask(taskId: string, partOf: (operationId: string) => Part): void {
    this.#tasks.set(taskId, partOf);
  }

  readonly faults: FaultPoints = async (place) => {
    await this.#partOf(place).script.at?.(place);
  };

  /** The same handlers under their scripts. */
  direct(handlers: AnyHandlers): AnyHandlers {
    const wrapped = Object.entries(handlers).map(([name, handler]) => [
      name,
      (...given: unknown[]) => this.#call(name as HandlerName, handler as Handler, handlers, given),
    ]);
    return Object.freeze(Object.fromEntries(wrapped) as AnyHandlers);
  }

  /** S4.4: a gate's policy comes with the call, and its expiry with the script. */
  expiryOf(place: Pick<FaultPlace, 'operationId' | 'taskId'>): number | undefined {
    return this.#tasks.has(place.taskId) ? this.#partOf(place).expiresInMs : undefined;
  }

  #call(name: HandlerName, handler: Handler, owner: AnyHandlers, given: unknown[]): Promise<unknown> {
    const context = given.at(-1) as Context;
    const operationId = context.originalOperationId ?? context.operationId;
    const part = this.#partOf({ operationId, taskId: context.taskId });
    part.input ??= (name === 'lookup' ? context.input : given[0]) as JsonObject;
    if (name === 'execute') part.executed = given[0] as JsonObject;
    const turn = (part.calls[name] ?? 0) + 1;
    part.calls[name] = turn;
    const real = (signal = context.signal): Promise<unknown> =>
      Promise.resolve(Reflect.apply(handler, owner, [...given.slice(0, -1), { ...context, signal }]));
    const hook = part.script[name];
    return hook ? hook({ turn, signal: context.signal, real }) : real();
  }

  #partOf({ operationId, taskId }: Pick<FaultPlace, 'operationId' | 'taskId'>): Part {
    const part = this.#parts.get(operationId) ?? this.#tasks.get(taskId)?.(operationId);
    if (part === undefined) throw new Error(`no script was written for ${operationId}`);
    return part;
  }
}

type Handler = (...given: unknown[]) => unknown;
interface Context {
  operationId: string;
  originalOperationId?: string;
  taskId: string;
  signal: AbortSignal;
  /** Given to a look-up alone. */
  input?: unknown;
}
