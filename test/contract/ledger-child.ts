/**
 * A process of the ledger's process tests. `append`: THREADS threads append COUNT entries each to one chain, and every
 * one that was answered is told to the test. `race`: reserves every key, many times at once, and tells what was fresh.
 */
import { Worker, isMainThread, parentPort, workerData } from 'node:worker_threads';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import * as fixture from './ledger-fixture.ts';

export interface ChildOptions {
  mode: 'append' | 'race';
  url: string;
  who: string;
  work: fixture.Work;
  threads: number;
  count: number;
  keys: string[];
}

if (!isMainThread) {
  await append(workerData as ChildOptions & { thread: number });
} else {
  const options = JSON.parse(process.env['HOLDFAST_TEST_OPTIONS'] ?? '') as ChildOptions;
  process.on('disconnect', () => process.exit(1));
  await (options.mode === 'append' ? appendInThreads(options) : race(options));
  process.disconnect();
}

async function appendInThreads(options: ChildOptions): Promise<void> {
  await Promise.all(
    Array.from({ length: options.threads }, (_, thread) => {
      const worker = new Worker(new URL(import.meta.url), { workerData: { ...options, thread } });
      worker.on('message', (entry) => process.send?.(entry));
      return new Promise((resolve, reject) => worker.once('exit', resolve).once('error', reject));
    }),
  );
}

async function append({ url, who, work, count, thread }: ChildOptions & { thread: number }): Promise<void> {
  const ledger = await openLedger({ url });
  for (let n = 0; n < count; n += 1) {
    const entry = `${who}.${thread}.${n}`;
    await ledger.appendAudit({ ...work, tenant: 'acme', notes: [{ type: 'noted', at: 0, data: { entry } }] });
    parentPort?.postMessage(entry);
  }
  await ledger.close();
}

async function race({ url, keys }: ChildOptions): Promise<void> {
  const ledger = await openLedger({ url });
  process.send?.('ready');
  await new Promise((resolve) => process.once('message', resolve));
  for (const key of keys) {
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => ledger.reserve(fixture.reservation(key))),
    );
    for (const answer of answers) process.send?.({ key, kind: answer.kind });
  }
  await ledger.close();
}
