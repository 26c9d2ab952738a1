import type { Holdfast } from '../../worker/index.ts';

/** For `/readyz`: rejects naming what does not answer just now, of engine, ledger and the process's own worker. */
export const readinessOf =
  ({ check }: Pick<Holdfast, 'check'>) =>
  async (): Promise<void> => {
    const missing = Object.entries(await check()).filter(([, isWell]) => isWell === false);
    if (missing.length > 0) throw new Error(`not reachable: ${missing.map(([name]) => name).join(', ')}`);
  };
