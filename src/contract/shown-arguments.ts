/**
 * The arguments as an approver and the audit see them (S4.7): redacted, and small enough to be carried about in journal,
 * state and audit beside an input of up to 1 MiB. Pure.
 */
import type { Json, JsonObject } from '../task/json.ts';
import { redact } from './redact.ts';
import { cut } from './text.ts';

/** Up to this long they are shown whole. */
const SHOWN_CHARS_MAX = 32 * 1024;
/** Beyond it, what is kept of each text and of each list or object. */
const TEXT_CHARS_KEPT = 200;
const MEMBERS_KEPT = 20;

/** `shortened` says that texts or lists were cut; `arguments` null that even so they are too long to be shown. */
export function shownArguments(
  input: Json,
  sensitive: readonly string[],
): { arguments: Json; shortened?: true } & JsonObject {
  const whole = redact(input, sensitive);
  if (isShort(whole)) return { arguments: whole };
  const shortened = shorten(whole);
  return { arguments: isShort(shortened) ? shortened : null, shortened: true };
}

const isShort = (value: Json): boolean => JSON.stringify(value).length <= SHOWN_CHARS_MAX;

function shorten(value: Json): Json {
  if (typeof value === 'string') return cut(value, TEXT_CHARS_KEPT);
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) {
    const kept = value.slice(0, MEMBERS_KEPT).map(shorten);
    return value.length > MEMBERS_KEPT ? [...kept, `… ${value.length - MEMBERS_KEPT} more`] : kept;
  }
  const entries = Object.entries(value);
  const kept = entries
    .slice(0, MEMBERS_KEPT)
    .map(([key, part]): [string, Json] => [cut(key, TEXT_CHARS_KEPT), shorten(part)]);
  const rest: [string, Json][] =
    entries.length > MEMBERS_KEPT ? [['…', `${entries.length - MEMBERS_KEPT} more`]] : [];
  return Object.fromEntries([...kept, ...rest]);
}
