/**
 * A whole Holdfast around one test file: a Temporal server with a database, ledgers on SQLite and PostgreSQL, the fault
 * target, and as many worker and gateway processes as the test asks for. `close` ends all of it.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { HoldfastClient, deriveHmacKey, parseEncryptionKeys } from '../../src/client/index.ts';
import type { TaskAnswer } from '../../src/client/index.ts';
import { startEmbeddedTemporal } from '../../src/embedded/index.ts';
import type { EmbeddedTemporal } from '../../src/embedded/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import type { TaskState } from '../../src/task/state.ts';
import { dataConverterOf } from '../../worker/index.ts';
import { TestChild, endAllChildren } from './child-process.ts';
import { createEffectTable, faultActions } from './fault-actions.ts';
import { startFaultTarget } from './fault-target.ts';
import type { FaultTarget } from './fault-target.ts';
import { createTestDatabase } from './postgres.ts';
import type { TestDatabase } from './postgres.ts';
import { workflowBundleFile } from './workflow-bundle-file.ts';
import type { CallerProcessOptions, WorkerProcessOptions } from './worker-options.ts';

export type StoreKind = 'sqlite' | 'postgres';

export const PRINCIPAL = { tenant: 'local', subject: 'tester', roles: [] };

/** How long a task may take to an outcome, the crash and its recovery included. */
const OUTCOME_MS = 60_000;

export interface Store {
  kind: StoreKind;
  url: string;
  ledger: Ledger;
  /** PostgreSQL alone: for looking behind the ledger's back. */
  database: TestDatabase | null;
}

export class FaultSystem {
  readonly folder: string;
  readonly target: FaultTarget;
  readonly encryptionKeys: string | undefined;
  temporal: EmbeddedTemporal;
  private stateDir: string;
  private readonly bundleFile: string;
  private connection: Connection | null = null;
  private readonly stores = new Map<StoreKind, Promise<Store>>();

  private constructor(parts: {
    folder: string;
    target: FaultTarget;
    temporal: EmbeddedTemporal;
    bundleFile: string;
    encryptionKeys: string | undefined;
  }) {
    this.folder = parts.folder;
    this.target = parts.target;
    this.temporal = parts.temporal;
    this.stateDir = join(parts.folder, 'temporal');
    this.bundleFile = parts.bundleFile;
    this.encryptionKeys = parts.encryptionKeys;
  }

  static async open({ encryptionKeys }: { encryptionKeys?: string } = {}): Promise<FaultSystem> {
    const folder = mkdtempSync(join(tmpdir(), 'holdfast-fault-'));
    const [target, temporal, bundleFile] = await Promise.all([
      startFaultTarget(),
      startEmbeddedTemporal({ stateDir: join(folder, 'temporal'), ui: false }),
      workflowBundleFile(),
    ]);
    process.env['HOLDFAST_TARGET_URL'] = target.url;
    return new FaultSystem({ folder, target, temporal, bundleFile, encryptionKeys });
  }

  async close(): Promise<void> {
    await endAllChildren();
    await this.connection?.close();
    for (const opening of this.stores.values()) {
      const { ledger, database } = await opening;
      await ledger.close();
      await database?.drop();
    }
    await this.temporal.stop();
    await this.target.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** One ledger of each kind for a test file, opened when first asked for. */
  store(kind: StoreKind): Promise<Store> {
    const opening = this.stores.get(kind) ?? openStore(kind, this.folder);
    this.stores.set(kind, opening);
    return opening;
  }

  async engine(): Promise<Client> {
    this.connection ??= await Connection.connect({ address: this.temporal.address });
    const dataConverter = dataConverterOf(this.keys());
    return new Client({ connection: this.connection, namespace: this.temporal.namespace, dataConverter });
  }

  async client(store: Store, taskQueue: string): Promise<HoldfastClient> {
    const { ledger } = store;
    return new HoldfastClient({
      temporal: await this.engine(),
      ledger,
      actions: faultActions({ withSecrets: this.keys().length > 0 }),
      taskQueue,
      hmacKey: deriveHmacKey(this.keys()),
    });
  }

  worker(store: Store, options: Partial<WorkerProcessOptions> = {}, script = 'worker-process.ts'): TestChild {
    return new TestChild(
      script,
      { ...this.system(store), bundleFile: this.bundleFile, ...options },
      this.target.env,
    );
  }

  caller(
    store: Store,
    options: Omit<CallerProcessOptions, 'ledgerUrl' | 'address' | 'namespace'>,
  ): TestChild {
    return new TestChild('caller-process.ts', { ...this.system(store), ...options }, this.target.env);
  }

  /** SIGKILL, then again on the same data; `awayMs` is how long nobody answers. */
  async killTemporal(): Promise<{ restart: () => Promise<void> }> {
    const dead = this.temporal;
    process.kill(dead.pid, 'SIGKILL');
    await dead.exited;
    await dead.stop(); // frees the folder
    return {
      restart: async () => {
        this.temporal = await startEmbeddedTemporal({ stateDir: this.stateDir, ui: false });
        if (this.temporal.address !== dead.address)
          throw new Error('the server came back at another address');
      },
    };
  }

  /** Another server without any of the old one's data, as after its retention. */
  async forgetTemporal(): Promise<void> {
    await this.connection?.close();
    this.connection = null;
    await this.temporal.stop();
    this.stateDir = join(this.folder, unique('temporal'));
    this.temporal = await startEmbeddedTemporal({ stateDir: this.stateDir, ui: false });
  }

  /** Closes the ledger of this process and opens it again. */
  async reopen(store: Store): Promise<Store> {
    await store.ledger.close();
    const opening = openLedger({ url: store.url }).then((ledger) => ({ ...store, ledger }));
    this.stores.set(store.kind, opening);
    return opening;
  }

  /** The workflow's own state, which a worker must be there to tell. */
  async state(taskId: string): Promise<TaskState> {
    return (await this.engine()).workflow.getHandle(taskId).query<TaskState>('task');
  }

  private system({ url }: Store) {
    const { address, namespace } = this.temporal;
    return {
      ledgerUrl: url,
      address,
      namespace,
      ...(this.encryptionKeys && { encryptionKeys: this.encryptionKeys }),
    };
  }

  private keys() {
    return this.encryptionKeys === undefined ? [] : parseEncryptionKeys(this.encryptionKeys);
  }
}

async function openStore(kind: StoreKind, folder: string): Promise<Store> {
  const database = kind === 'postgres' ? await createTestDatabase() : null;
  const url = database?.url ?? `sqlite:${join(folder, 'ledger.db')}`;
  const ledger = await openLedger({ url });
  await ledger.migrate();
  await ledger.transaction((_transitions, tx) => createEffectTable(tx));
  return { kind, url, ledger, database };
}

/** Unlike any other of this run, so that cells can share servers. */
export const unique = (name: string): string => `${name}-${randomBytes(4).toString('hex')}`;

/** Ended, or a person is asked; throws when neither happens in time. */
export async function outcomeOf(client: HoldfastClient, taskId: string): Promise<TaskAnswer> {
  const answer = await client.wait(taskId, PRINCIPAL, { timeoutMs: OUTCOME_MS });
  if (['completed', 'failed', 'cancelled', 'needs_attention'].includes(answer.status)) return answer;
  const detail = await client.detail(taskId, PRINCIPAL).catch(String);
  throw new Error(
    `task ${taskId} came to no outcome within ${OUTCOME_MS} ms: ${answer.status}, ${answer.statusMessage}\n${JSON.stringify(detail).slice(0, 6_000)}`,
  );
}
