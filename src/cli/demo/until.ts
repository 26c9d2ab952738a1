/** Bounded polling, for what announces itself nowhere. */
import { setTimeout as delay } from 'node:timers/promises';

const POLL_MS = 25;
const PATIENCE_MS = 30_000;

/** Throws, naming `what`, when it has not come about within 30 s. */
export async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await isSo())) {
    if (Date.now() > deadline) throw new Error(`gave up waiting until ${what}`);
    await delay(POLL_MS);
  }
}
