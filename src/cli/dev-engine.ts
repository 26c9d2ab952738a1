/** One-machine use: the embedded Temporal server in the state folder, and what its errors are to a user. */
import { resolve } from 'node:path';
import { EmbeddedError, startEmbeddedTemporal } from '../embedded/index.ts';
import type { EmbeddedTemporal } from '../embedded/index.ts';
import { HoldfastError } from '../contract/error.ts';

/** Throws `embedded_unavailable` with what to do. */
export async function startDevEngine(
  stateDir: string,
  say: (line: string) => void,
): Promise<EmbeddedTemporal> {
  try {
    return await startEmbeddedTemporal({ stateDir: resolve(stateDir, 'temporal'), log: say });
  } catch (error) {
    return withReason(error);
  }
}

/** What the embedded server's own errors are to a user: `embedded_unavailable`, with what to do. */
export function withReason(error: unknown): never {
  if (!(error instanceof EmbeddedError)) throw error;
  throw new HoldfastError('embedded_unavailable', error.message, {
    details: { reason: error.code },
    cause: error,
  });
}
