/** What the processes of the crash tests are started with. Plain JSON: it crosses to another process. */
import type { Stop } from './child-messages.ts';

export interface SystemOptions {
  ledgerUrl: string;
  address: string;
  namespace: string;
  /** As HOLDFAST_ENCRYPTION_KEY. */
  encryptionKeys?: string;
}

export interface WorkerProcessOptions extends SystemOptions {
  bundleFile: string;
  /** Taken at once; a standby has none and waits for the order `run`. */
  taskQueue?: string;
  stop?: Stop;
  /** `effect_first` is the wrong order that the second table measures. */
  protocol?: 'holdfast' | 'effect_first';
  /** Default all. */
  takes?: 'all' | 'workflows' | 'activities';
  activityPolls?: number;
  activitySlots?: number;
  /** The product's own supervision of remote tasks, under its documented lease; SIGTERM stops the worker. */
  isWhole?: boolean;
  /** Contracts as another deploy might have them, in another order (field case 15). */
  otherDeploy?: boolean;
}

export interface CallerProcessOptions extends SystemOptions {
  taskQueue: string;
  stop?: Stop;
  /** Serves MCP over HTTP; else it only starts what it is ordered to. */
  gateway?: { blockingMs: number };
}
