/** `implementAction`: joins a contract with its handlers and refuses the pair where one promises what the other can't keep. */
import type { z } from 'zod';
import type { Plan } from '../task/plan.ts';
import { contractError } from './define-action.ts';
import type { ActionContract, Defect } from './define-action.ts';
import type { ActionHandlers, AnyHandlers } from './handlers.ts';
import { rehearsalDefects } from './rehearsal.ts';
import type { Rehearsal } from './rehearsal.ts';

/** A contract with the handlers that keep it. Handlers are called with validated input only. */
export interface Action<
  Input extends z.ZodObject = z.ZodObject,
  Output extends z.ZodType = z.ZodType,
  Name extends string = string,
> {
  readonly contract: ActionContract<Input, Output, Name>;
  readonly handlers: AnyHandlers;
  /** How it is rehearsed (S6.6). */
  readonly rehearsal?: Rehearsal;
}

/** The handlers, and how they are rehearsed (S6.6). */
type Implementation<Input extends z.ZodObject, Output extends z.ZodType> = ActionHandlers<
  z.output<Input>,
  z.output<Output>
> & { rehearsal?: Rehearsal<z.input<Input>> };

const HANDLERS = [
  'precondition',
  'execute',
  'remoteResult',
  'lookup',
  'verify',
  'rollback',
  'verifyRollback',
] as const;

/**
 * Answers the action. Throws `invalid_contract` with every defect found (`details.issues`):
 * no `verify` and no reason for it (S2.6); `inBand` or `compensate` without `rollback`, or without a proof that it
 * worked (`verifyRollback`, or a `lookup` declared conclusive); `conclusive` or `plain` declared without `lookup`; a conditional `execute` that takes no
 * context and so can't pass `operationId` on (field case 3); a handler that is no function, or not a known one.
 * `rehearsal` says how `holdfast rehearse` calls the action and counts its effects; tasks never use it.
 */
export function implementAction<
  Input extends z.ZodObject,
  Output extends z.ZodType,
  Name extends string = string,
>(
  contract: ActionContract<Input, Output, Name>,
  { rehearsal, ...handlers }: Implementation<Input, Output>,
): Action<Input, Output, Name> {
  const given = handlers as unknown as AnyHandlers;
  const defects = [
    ...shapeDefects(given),
    ...handlerDefects(contract, given),
    ...rehearsalDefects(rehearsal),
  ];
  if (defects.length > 0) throw contractError(contract.name, defects);
  return Object.freeze({
    contract,
    handlers: Object.freeze({ ...given }),
    ...(rehearsal && { rehearsal: rehearsal as unknown as Rehearsal }),
  });
}

/** What of the handlers a plan freezes, so that the workflow can decide without calling one. */
export function handlersPresent({ contract, handlers }: Action): Plan['handlers'] {
  return {
    precondition: handlers.precondition !== undefined,
    lookup: handlers.lookup === undefined ? 'none' : (contract.lookup ?? 'plain'),
    verify: handlers.verify !== undefined,
    rollback: handlers.rollback !== undefined,
  };
}

function shapeDefects(handlers: AnyHandlers): Defect[] {
  const unknown = Object.keys(handlers).filter((name) => !(HANDLERS as readonly string[]).includes(name));
  return [
    ...unknown.map((name) => ({
      field: `handlers.${name}`,
      message: `unknown: write one of ${HANDLERS.join(', ')}`,
    })),
    ...HANDLERS.filter((name) => handlers[name] !== undefined && typeof handlers[name] !== 'function').map(
      (name) => ({
        field: `handlers.${name}`,
        message: 'write an async function',
      }),
    ),
  ];
}

function handlerDefects(contract: ActionContract, handlers: AnyHandlers): Defect[] {
  const { effect, rollback, transactional, noVerify, lookup } = contract;
  const undoes = rollback.kind === 'inBand' || rollback.kind === 'compensate';
  const isConclusive = lookup === 'conclusive' && handlers.lookup !== undefined;
  const checks: [boolean, string, string][] = [
    [handlers.execute === undefined, 'handlers.execute', 'missing: it brings the effect about'],
    [
      handlers.verify === undefined && noVerify === null,
      'handlers.verify',
      "missing: re-read the target, or say in the contract why not: verify: {none: '…'} (S2.6)",
    ],
    [
      handlers.verify !== undefined && noVerify !== null && effect !== 'safe',
      'verify.none',
      'the contract says there is no verify, and there is one: remove either',
    ],
    [
      undoes && handlers.rollback === undefined,
      'handlers.rollback',
      `missing: rollback.kind '${rollback.kind}' needs it (S6.1)`,
    ],
    [
      !undoes && handlers.rollback !== undefined,
      'rollback.kind',
      `'${rollback.kind}' never calls the rollback handler: write 'inBand' or 'compensate'`,
    ],
    [
      undoes && handlers.verifyRollback === undefined && !isConclusive,
      'handlers.verifyRollback',
      'missing: nothing proves that a rollback worked; add it, or a lookup declared conclusive (S6.2)',
    ],
    [
      lookup !== null && handlers.lookup === undefined,
      'handlers.lookup',
      `missing: the contract declares a ${lookup} lookup`,
    ],
    [
      effect === 'conditional' && !transactional && takesNoContext(handlers),
      'handlers.execute',
      "takes no context, so it can't pass context.operationId on for the target to dedupe by: take (input, context), or declare the effect 'unsafe'",
    ],
  ];
  return checks.flatMap(([isDefect, field, message]) => (isDefect ? [{ field, message }] : []));
}

/** Fewer than two parameters, and neither a default nor a rest parameter, which `length` leaves out. */
function takesNoContext({ execute }: AnyHandlers): boolean {
  if (typeof execute !== 'function' || execute.length >= 2) return false;
  const source = Function.prototype.toString.call(execute).slice(0, 1_000);
  const end = source.search(/\)\s*(=>|\{)|=>/);
  return !/\.\.\.|=/.test(source.slice(0, end === -1 ? source.length : end));
}
