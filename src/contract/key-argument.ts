import { isJsonObject } from '../task/json.ts';
import type { Json } from '../task/json.ts';
import { checkKey } from './ids.ts';

/**
 * The key that a caller gave the server behind an action, in that server's own argument: it names the intent as ours does
 * (S1.2). Undefined where there is none; throws `invalid_key` for what can't be one.
 */
export function keyAmong(args: unknown, keyArgument: string | undefined): string | undefined {
  if (keyArgument === undefined || !isJsonObject(args as Json)) return undefined;
  const { [keyArgument]: given = null } = args as Record<string, Json>;
  return given === null || given === '' ? undefined : checkKey(given);
}
