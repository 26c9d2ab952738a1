/**
 * How an action is rehearsed (S6.6): with which arguments, and how the target itself counts what took place. Declared
 * beside the handlers, used by `holdfast rehearse` and `rehearse()` alone, never in a task.
 */
import type { JsonObject } from '../task/json.ts';

/** The call whose effect is counted. */
export interface RehearsedCall<Args = JsonObject> {
  key: string;
  args: Args;
  /** Transactional actions only (S2.8): an open transaction on the rehearsal's ledger (Kysely). */
  tx?: unknown;
}

/** The target's own count is the oracle: it must not be derived from what a handler returned or the ledger holds. */
export interface Rehearsal<Args = JsonObject> {
  /**
   * What the action is called with, some forty times, each time under a key of its own. A function where the target
   * takes the same arguments only once. Default: `--args`.
   */
  args?: Args | ((key: string) => Args);
  /**
   * What an approver might make of them (S4.2). With it edits are rehearsed: `count` is asked with the arguments that are
   * to take effect, and with those that are not, of which it must find none.
   */
  edited?: Args | ((key: string) => Args);
  /**
   * How often the effect of this operation took place, by the target's own books: whatever it was undone since, where
   * `undone` is given; what still stands, where it is not.
   */
  count(operationId: string, call: RehearsedCall<Args>): Promise<number>;
  /** How often that effect was undone. Without it a rollback that undoes twice goes unseen. */
  undone?(operationId: string, call: RehearsedCall<Args>): Promise<number>;
}

/** What is wrong with the shape of a rehearsal, by field. */
export function rehearsalDefects(rehearsal: unknown): { field: string; message: string }[] {
  if (rehearsal === undefined) return [];
  if (typeof rehearsal !== 'object' || rehearsal === null)
    return [{ field: 'rehearsal', message: 'write {args, edited?, count, undone?}' }];
  const { args, edited, count, undone, ...others } = rehearsal as Record<string, unknown>;
  const isNoArguments = (given: unknown): boolean =>
    given !== undefined && typeof given !== 'function' && (typeof given !== 'object' || given === null);
  const wanted = 'write the arguments, or a function of the key that answers them';
  const checks: [boolean, string, string][] = [
    [isNoArguments(args), 'args', wanted],
    [isNoArguments(edited), 'edited', wanted],
    [typeof count !== 'function', 'count', 'write an async function of the operationId'],
    [
      undone !== undefined && typeof undone !== 'function',
      'undone',
      'write an async function of the operationId',
    ],
    [
      Object.keys(others).length > 0,
      Object.keys(others).join(', '),
      'unknown: write args, edited, count and undone',
    ],
  ];
  return checks.flatMap(([isDefect, field, message]) =>
    isDefect ? [{ field: `rehearsal.${field}`, message }] : [],
  );
}
