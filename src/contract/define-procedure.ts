/**
 * `defineProcedure`: what callers are promised of a procedure. Its code is a file of its own (`holdfast/procedure`), bundled
 * into the worker's workflow code, which sees neither this nor any schema.
 */
import { z } from 'zod';
import { defineAction } from './define-action.ts';
import type { Duration } from './duration.ts';
import type { Question } from './asked.ts';
import type { Action } from './implement-action.ts';

/** What a user writes. */
export interface ProcedureDefinition<Input extends z.ZodObject, Name extends string = string> {
  /** The tool's name, and that of `procedure(name, …)` in the code. Actions and procedures share their names. */
  name: Name;
  /** Grows when the meaning of the procedure changes. Default 1. */
  version?: number;
  description: string;
  /** Unknown arguments are refused unless the object is loose or has a catchall. */
  input: Input;
  /** From its start until no new step begins; people's time is not counted. Default 30 d, at most 365 d. */
  run?: Duration;
  /** As an action's. */
  ask?: Question[];
  /** As an action's. */
  tasks?: 'optional' | 'required';
  /** Business SLA, 1 ms to 365 d: alerts once when the procedure, people's time included, is not over by then; ends nothing. Default none. */
  sla?: Duration;
}

/** A procedure's contract, as the configuration takes it. */
export type ProcedureContract<Input extends z.ZodObject = z.ZodObject, Name extends string = string> = Action<
  Input,
  z.ZodType,
  Name
>;

/** Throws `invalid_contract` as `defineAction` does. Frozen. */
export function defineProcedure<Input extends z.ZodObject, const Name extends string = string>(
  definition: ProcedureDefinition<Input, Name>,
): ProcedureContract<Input, Name> {
  const { name, version = 1, description, input, run = '30d', sla, ask, tasks } = definition;
  const contract = defineAction({
    name,
    version,
    description,
    input,
    output: z.json(),
    // Its steps are done once each and undone by their own contracts (S6.3).
    effect: 'conditional',
    rollback: { kind: 'compensate' },
    onCancel: 'rollback',
    verify: { none: 'each of its steps is verified by its own contract' },
    deadlines: { run, ...(sla !== undefined && { sla }) },
    inline: false,
    ...(ask && { ask }),
    ...(tasks && { tasks }),
  });
  return Object.freeze({
    contract: Object.freeze({ ...contract, isProcedure: true }),
    handlers: { execute: () => Promise.reject(new Error('a procedure is not performed as an action')) },
  });
}
