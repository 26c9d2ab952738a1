/**
 * What a call of a tool may do, as far as it is vouched for (S5.1).
 *
 * Two things count: `_meta["holdfast/effect"]` in `tools/list`, which a Holdfast gateway publishes from the contract, and
 * this client's own configuration. Where both speak the stricter class holds. `readOnlyHint`, `idempotentHint` and
 * descriptions never count, and a tool nobody vouches for is `unsafe`.
 */
import { EFFECT_META, OWN_KEY_META } from '../contract/wire-names.ts';
import type { EffectClass } from '../task/plan.ts';

/** What the program that uses the client knows about a tool of some server. */
export interface ToolConfiguration {
  effect: EffectClass;
  /** The argument that the server deduplicates by. Without it a `conditional` tool of a foreign server is never sent twice. */
  keyArgument?: string;
}

export interface ToolTerms {
  effect: EffectClass;
  /** Where the idempotency key goes; null: the tool takes none. `own`: an argument whose value is the key as well. */
  key: { in: 'meta'; own?: string } | { in: 'argument'; name: string } | null;
}

/** A tool as `tools/list` shows it. */
export interface PublishedTool {
  name: string;
  _meta?: Readonly<Record<string, unknown>>;
  [member: string]: unknown;
}

const STRICTNESS = ['safe', 'conditional', 'unsafe'] as const satisfies readonly EffectClass[];

export function toolTerms(
  published: PublishedTool | undefined,
  configured: ToolConfiguration | undefined,
): ToolTerms {
  const own = effectOf(published?._meta?.[EFFECT_META]);
  const vouched = [own, configured?.effect].filter((each) => each !== undefined);
  const effect = vouched.length === 0 ? 'unsafe' : stricter(vouched);
  if (effect === 'safe') return { effect, key: null };
  if (configured?.keyArgument !== undefined)
    return { effect, key: { in: 'argument', name: configured.keyArgument } };
  const argument = published?._meta?.[OWN_KEY_META];
  const among = typeof argument === 'string' ? { own: argument } : {};
  return { effect, key: own === undefined ? null : { in: 'meta', ...among } };
}

const effectOf = (value: unknown): EffectClass | undefined => STRICTNESS.find((each) => each === value);

const stricter = (effects: readonly EffectClass[]): EffectClass =>
  STRICTNESS.findLast((each) => effects.includes(each)) ?? 'unsafe';
