/** M1.3: where a call's idempotency key comes from. */
import { HoldfastError } from '../contract/error.ts';
import { checkKey } from '../contract/ids.ts';
import { keyAmong } from '../contract/key-argument.ts';
import { KEY_ARGUMENT, KEY_META } from '../contract/wire-names.ts';
import type { JsonObject } from '../task/json.ts';

export interface KeyedArguments {
  args: JsonObject;
  /** Absent: the call is keyless (S1.7). */
  key?: string;
}

/**
 * Takes the key from the argument beside the tool's own or from `_meta`, and answers the arguments without it; else from
 * the tool's own argument for one (`keyArgument`), which planning leaves out.
 * `takesArgument` is false for `safe` tools, whose schema has no such argument: there it is a field like any other.
 *
 * Throws `invalid_key` for anything but 1 to 255 characters, `invalid_arguments` when both are given and differ.
 */
export function takeKey(
  args: JsonObject,
  meta: Readonly<Record<string, unknown>>,
  takesArgument: boolean,
  keyArgument?: string,
): KeyedArguments {
  const { [KEY_ARGUMENT]: argument, ...others } = args;
  const fromArgument = takesArgument && Object.hasOwn(args, KEY_ARGUMENT) ? checkKey(argument) : undefined;
  const fromMeta = meta[KEY_META] === undefined ? undefined : checkKey(meta[KEY_META]);
  if (fromArgument !== undefined && fromMeta !== undefined && fromArgument !== fromMeta) throw keysDiffer();
  const key = fromArgument ?? fromMeta ?? keyAmong(args, keyArgument);
  return { args: fromArgument === undefined ? args : others, ...(key !== undefined && { key }) };
}

const keysDiffer = () =>
  new HoldfastError(
    'invalid_arguments',
    `The argument ${KEY_ARGUMENT} and _meta["${KEY_META}"] differ. Send one of them.`,
    {
      details: {
        issues: [
          {
            path: `/${KEY_ARGUMENT}`,
            message: `differs from _meta["${KEY_META}"]`,
            expected: 'the same key, or only one',
          },
        ],
      },
    },
  );
