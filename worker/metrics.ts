/**
 * What a process counts, for Prometheus, besides its gateway: the ledger's transactions, the delivery of alerts, the
 * worker's slots, and who waits for a person. Nothing is asked for before somebody reads it.
 */
import type { Client } from '@temporalio/client';
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import { FIXED_GATEWAY_LIMITS } from '../src/contract/gateway-limits.ts';
import type { HoldfastWorker } from './create-worker.ts';
import type { Log } from './logger.ts';

export type AlertFate = 'delivered' | 'failed' | 'dead';

export interface Metrics {
  registry: Registry;
  transaction(ms: number, isCommitted: boolean): void;
  alert(fate: AlertFate): void;
  /** Of the worker of this process. */
  addWorker(worker: HoldfastWorker): void;
  /** Counted by the engine's visibility when read, once in `waitingCountedMs` at most. */
  addWaiting(temporal: Client, log: Log): void;
}

const TRANSACTION_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const WAITING_STATUSES = ['awaiting_approval', 'needs_attention'] as const;
const COUNT_MS = 1_500;

export function createMetrics(): Metrics {
  const registry = new Registry();
  const registers = [registry];
  const transactions = new Histogram({
    name: 'holdfast_ledger_transaction_seconds',
    help: 'How long transactions of the ledger took, the wait for their turn included.',
    labelNames: ['outcome'],
    buckets: TRANSACTION_BUCKETS,
    registers,
  });
  const alerts = new Counter({
    name: 'holdfast_alerts_total',
    help: 'Deliveries of alerts, by what became of them.',
    labelNames: ['outcome'],
    registers,
  });
  return {
    registry,
    transaction: (ms, isCommitted) =>
      transactions.observe({ outcome: isCommitted ? 'committed' : 'failed' }, ms / 1_000),
    alert: (outcome) => alerts.inc({ outcome }),
    addWorker: (worker) => addWorker(registry, worker),
    addWaiting: (temporal, log) => addWaiting(registry, temporal, log),
  };
}

function addWorker(registry: Registry, worker: HoldfastWorker): void {
  const registers = [registry];
  new Gauge({
    name: 'holdfast_activities_running',
    help: 'Handlers that run just now in this worker.',
    registers,
    collect() {
      this.set(worker.health().activitiesRunning);
    },
  });
  new Gauge({
    name: 'holdfast_workflows_cached',
    help: 'Tasks that this worker keeps in memory.',
    registers,
    collect() {
      this.set(worker.health().workflowsCached);
    },
  });
}

function addWaiting(registry: Registry, temporal: Client, log: Log): void {
  let countedAt = Number.NEGATIVE_INFINITY;
  const count = (status: string): Promise<number> =>
    temporal.withDeadline(Date.now() + COUNT_MS, async () => {
      const query = `HoldfastStatus = '${status}' AND ExecutionStatus = 'Running'`;
      return (await temporal.workflow.count(query)).count;
    });
  new Gauge({
    name: 'holdfast_tasks_waiting',
    help: 'Tasks that wait for a person, of all tenants; absent while the engine does not answer.',
    labelNames: ['status'],
    registers: [registry],
    async collect() {
      if (Date.now() - countedAt < FIXED_GATEWAY_LIMITS.waitingCountedMs.value) return;
      countedAt = Date.now();
      this.reset();
      try {
        const counts = await Promise.all(WAITING_STATUSES.map(count));
        WAITING_STATUSES.forEach((status, index) => this.set({ status }, counts[index] ?? 0));
      } catch (error) {
        log.debug({ err: error }, 'those who wait for a person can not be counted just now');
      }
    },
  });
}
