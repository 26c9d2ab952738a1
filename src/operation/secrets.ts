/**
 * The sensitive values of one operation, kept to be taken out of whatever text a handler produced (S2.10): an error
 * message or a reason may quote the very argument it is about. What looks like a credential goes with them.
 */
import { REDACTED, redact, withoutCredentials } from '../contract/redact.ts';
import type { Failure } from '../task/failure.ts';
import type { Json, JsonObject } from '../task/json.ts';

/** Longer lists would make a pattern too large; the longest values, which identify the most, go first. */
const SECRETS_MAX = 1_000;

export class Secrets {
  private readonly values = new Set<string>();
  private pattern: RegExp | null = null;

  /** Remembers the sensitive parts of `value`. */
  add(value: Json, patterns: readonly string[]): void {
    if (patterns.length === 0) return;
    collectHidden(value, redact(value, patterns), this.values);
    const known = [...this.values].sort((a, b) => b.length - a.length).slice(0, SECRETS_MAX);
    this.pattern = known.length === 0 ? null : new RegExp(known.map(escapeRegExp).join('|'), 'g');
  }

  clean(text: string): string {
    return withoutCredentials(this.pattern === null ? text : text.replace(this.pattern, REDACTED));
  }

  cleanFailure(failure: Failure): Failure {
    const { details, ...rest } = failure;
    return {
      ...rest,
      code: this.clean(rest.code),
      message: this.clean(rest.message),
      ...(details && { details: this.cleanJson(details) as JsonObject }),
    };
  }

  private cleanJson(value: Json): Json {
    if (typeof value === 'string') return this.clean(value);
    if (typeof value === 'number') return this.clean(String(value)) === String(value) ? value : REDACTED;
    if (Array.isArray(value)) return value.map((part) => this.cleanJson(part));
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, part]) => [this.clean(key), this.cleanJson(part)]),
    );
  }
}

const escapeRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&');

/** Every string and number in the parts of `value` that its redacted copy no longer shows, as texts may quote them. */
function collectHidden(value: Json, shown: Json | undefined, into: Set<string>): void {
  if (value !== null && typeof value === 'object') {
    const isShown = shown !== null && typeof shown === 'object';
    const members = Array.isArray(value) ? value.entries() : Object.entries(value);
    for (const [key, part] of members) {
      collectHidden(part, isShown ? (shown as Record<string | number, Json>)[key] : REDACTED, into);
    }
    return;
  }
  if (value === shown || value === null || typeof value === 'boolean' || value === '') return;
  const text = String(value);
  for (const form of [text, encodeURIComponent(text), JSON.stringify(text).slice(1, -1)]) into.add(form);
}
