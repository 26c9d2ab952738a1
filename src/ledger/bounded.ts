import { unavailable } from './store-error.ts';

/** Ends the wait for work that holds a transaction; what the work does later meets a transaction that is over. */
export async function bounded<T>(work: Promise<T>, boundMs: number | undefined): Promise<T> {
  if (boundMs === undefined) return work;
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(unavailable('transaction_too_long', 'rolled_back')), boundMs);
  });
  try {
    return await Promise.race([work, bound]);
  } finally {
    clearTimeout(timer);
  }
}
