/** Workflow `lease` on a real engine, spoken to as tasks and bare clients do. */
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { WorkflowHandle } from '@temporalio/client';
import { Worker, bundleWorkflowCode } from '@temporalio/worker';
import { openTestServer } from '../../src/testing/test-server.ts';
import type { TestServer, TestServerKind } from '../../src/testing/test-server.ts';
import type { LeaseRelease, LeaseRequest, LeaseState } from '../../src/task/lease.ts';
import type { LeaseGrantMessage } from '../../workflows/messages.ts';

const nothing = (): void => undefined;
const QUIET = {
  log: nothing,
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: console.error,
};

export class LeaseStage {
  readonly server: TestServer;
  readonly #taskQueue: string;
  readonly #worker: Worker;
  readonly #stopped: Promise<void>;

  private constructor(server: TestServer, taskQueue: string, worker: Worker) {
    this.server = server;
    this.#taskQueue = taskQueue;
    this.#worker = worker;
    this.#stopped = worker.run();
  }

  static async open(kind: TestServerKind): Promise<LeaseStage> {
    const workflowsPath = fileURLToPath(new URL('lease-workflows.ts', import.meta.url));
    const [server, workflowBundle] = await Promise.all([
      openTestServer(kind),
      bundleWorkflowCode({ workflowsPath, logger: QUIET }),
    ]);
    const taskQueue = `lease-${randomUUID()}`;
    const { nativeConnection: connection, namespace = 'default' } = server.env;
    const worker = await Worker.create({ connection, namespace, taskQueue, workflowBundle });
    return new LeaseStage(server, taskQueue, worker);
  }

  async close(): Promise<void> {
    this.#worker.shutdown();
    await this.#stopped;
    await this.server.close();
  }

  /** A resource that no other test uses. */
  resource(): LeaseUnderTest {
    return new LeaseUnderTest(this, `lease-${randomUUID()}`);
  }

  async owner(options: { releases: boolean }): Promise<Owner> {
    const handle = await this.server.env.client.workflow.start('leaseOwner', {
      taskQueue: this.#taskQueue,
      workflowId: `owner-${randomUUID()}`,
      args: [options],
    });
    return { taskId: handle.workflowId, handle, grants: () => handle.query<LeaseGrantMessage[]>('grants') };
  }

  signalWithStart(workflowId: string, signal: string, message: unknown): Promise<unknown> {
    return this.server.env.client.workflow.signalWithStart('lease', {
      taskQueue: this.#taskQueue,
      workflowId,
      args: [{ v: 1, tenant: 'local', resource: 'printer' }],
      signal,
      signalArgs: [message],
    });
  }
}

export interface Owner {
  taskId: string;
  handle: WorkflowHandle;
  grants(): Promise<LeaseGrantMessage[]>;
}

export class LeaseUnderTest {
  readonly id: string;
  readonly #stage: LeaseStage;

  constructor(stage: LeaseStage, id: string) {
    this.#stage = stage;
    this.id = id;
  }

  get handle(): WorkflowHandle {
    return this.#stage.server.env.client.workflow.getHandle(this.id);
  }

  /** By signal-with-start, as the first of all does. */
  acquire(request: LeaseRequest): Promise<unknown> {
    return this.#stage.signalWithStart(this.id, 'leaseAcquire', request);
  }

  renew(request: LeaseRequest): Promise<void> {
    return this.handle.signal('leaseRenew', request);
  }

  release(release: LeaseRelease): Promise<void> {
    return this.handle.signal('leaseRelease', release);
  }

  async state(): Promise<LeaseState> {
    return (await this.handle.query<{ state: LeaseState }>('lease')).state;
  }
}
