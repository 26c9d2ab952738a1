import type { Fate } from './crash.ts';

/** Reports another effect than the target counts, or took effect twice. A completed `safe` action reports none. */
export function breaksPromise({
  effects,
  status,
  effect,
}: Pick<Fate, 'effects' | 'status' | 'effect'>): boolean {
  const saysNone = effect === 'none' && status !== 'completed';
  return effects > 1 || (effect === 'applied' && effects === 0) || (saysNone && effects > 0);
}
