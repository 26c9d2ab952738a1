/** The worker's own way to leases: their workflows run on its task queue (S8.2). */
import { Client } from '@temporalio/client';
import type { NativeConnection } from '@temporalio/worker';
import type { LeaseDoor } from '../activities/acquire-lease.ts';
import type { EncryptionKey } from '../src/client/encryption-keys.ts';
import { HoldfastError } from '../src/contract/error.ts';
import { WORKFLOW_LEASE } from '../workflows/messages.ts';
import type { LeaseArgument } from '../workflows/messages.ts';
import { dataConverterOf } from './data-converter.ts';

const SIGNAL_MS = 10_000;

interface Place {
  connection: NativeConnection;
  namespace: string;
  taskQueue: string;
  encryptionKeys: readonly EncryptionKey[];
}

export function leaseDoor({ connection, namespace, taskQueue, encryptionKeys }: Place): LeaseDoor {
  const client = new Client({ connection, namespace, dataConverter: dataConverterOf(encryptionKeys) });
  return {
    async acquire(tenant, { id, resource }, request) {
      const argument: LeaseArgument = { v: 1, tenant, resource };
      const ask = () =>
        client.workflow.signalWithStart(WORKFLOW_LEASE, {
          workflowId: id,
          taskQueue,
          args: [argument],
          signal: 'leaseAcquire',
          signalArgs: [request],
        });
      await client.withDeadline(Date.now() + SIGNAL_MS, ask).catch((cause: unknown) => {
        throw new HoldfastError('engine_unavailable', 'The lease could not be asked for.', { cause });
      });
    },
  };
}
