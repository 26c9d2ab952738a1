/**
 * `AbortSignal.any` that can be let go of. Node keeps a composite signal that somebody listens to, and everything the
 * listener reaches, until one of its sources aborts; most never do.
 */
export interface Following {
  /** Aborts with the first source that does, or with `abort`. */
  readonly signal: AbortSignal;
  abort(reason?: unknown): void;
  /** From then on no source reaches the signal. */
  release(): void;
}

export function followSignals(sources: readonly AbortSignal[]): Following {
  const own = new AbortController();
  const onAbort = (event: Event): void => own.abort((event.target as AbortSignal).reason);
  for (const source of sources) {
    if (source.aborted) own.abort(source.reason);
    else source.addEventListener('abort', onAbort, { once: true });
  }
  return {
    signal: own.signal,
    abort: (reason) => own.abort(reason),
    release: () => sources.forEach((source) => source.removeEventListener('abort', onAbort)),
  };
}
