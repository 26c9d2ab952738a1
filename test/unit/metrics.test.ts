/** What is counted: the page of operations has exactly that, and no caller can add a series to it. */
import { readFileSync } from 'node:fs';
import type { Client } from '@temporalio/client';
import { Registry } from 'prom-client';
import { describe, expect, test, vi } from 'vitest';
import { createGatewayMetrics, endOf } from '../../src/gateway/metrics.ts';
import type { HoldfastWorker } from '../../worker/create-worker.ts';
import { createMetrics } from '../../worker/metrics.ts';

const log = { debug: vi.fn(), info: vi.fn(), warn: vi.fn(), error: vi.fn() };
const worker = {
  health: () => ({ isTakingWork: true, activitiesRunning: 3, workflowsCached: 7 }),
} as unknown as HoldfastWorker;
const temporalWith = (count: (query: string) => Promise<{ count: number }>) =>
  ({
    withDeadline: (_until: number, call: () => Promise<unknown>) => call(),
    workflow: { count },
  }) as unknown as Client;

function everything(
  count: (query: string) => Promise<{ count: number }> = () => Promise.resolve({ count: 2 }),
) {
  const metrics = createMetrics();
  metrics.addWorker(worker);
  metrics.addWaiting(temporalWith(count), log);
  const gateway = createGatewayMetrics(metrics.registry);
  return { ...metrics, gateway };
}

test('the table in docs/operations.md has every metric with its kind and labels, and no other', () => {
  const page = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');
  const rows = [...page.matchAll(/^\| `(holdfast_\w+)` \| (\w+) \|([^|]*)\|/gm)].map(
    ([, name, kind, labels = '']) => [name, kind, [...labels.matchAll(/`(\w+)`/g)].map(([, label]) => label)],
  );
  const registered = everything()
    .registry.getMetricsAsArray()
    .map((metric) => [
      metric.name,
      metric.type,
      (metric as unknown as { labelNames: string[] }).labelNames.filter((label) => label !== 'le'),
    ]);
  expect(rows.sort()).toEqual(registered.sort());
});

describe('a registry', () => {
  test('counts calls, refusals, transactions, alerts, and what the worker says of itself', async () => {
    const { registry, gateway, transaction, alert } = everything();
    for (let n = 0; n < 3; n += 1) gateway.began();
    gateway.called('transfer', 'completed', 40);
    gateway.refused('openCallsMax');
    transaction(3, true);
    transaction(3, false);
    alert('dead');
    const text = await registry.metrics();
    for (const line of [
      'holdfast_calls_total{tool="transfer",outcome="completed"} 1',
      'holdfast_call_duration_seconds_bucket{le="0.05",tool="transfer"} 1',
      'holdfast_call_duration_seconds_bucket{le="0.025",tool="transfer"} 0',
      'holdfast_calls_refused_total{limit="openCallsMax"} 1',
      'holdfast_ledger_transaction_seconds_count{outcome="committed"} 1',
      'holdfast_ledger_transaction_seconds_count{outcome="failed"} 1',
      'holdfast_alerts_total{outcome="dead"} 1',
      'holdfast_open_calls 2',
      'holdfast_activities_running 3',
      'holdfast_workflows_cached 7',
      'holdfast_tasks_waiting{status="needs_attention"} 2',
    ])
      expect(text).toContain(`${line}\n`);
  });

  test('asks the engine who waits only when read, and not for every reader', async () => {
    const count = vi.fn((_query: string) => Promise.resolve({ count: 1 }));
    const { registry } = everything(count);
    expect(count).not.toHaveBeenCalled();
    await registry.metrics();
    await registry.metrics();
    expect(count.mock.calls.map(([query]) => query)).toEqual([
      "HoldfastStatus = 'awaiting_approval' AND ExecutionStatus = 'Running'",
      "HoldfastStatus = 'needs_attention' AND ExecutionStatus = 'Running'",
    ]);
  });

  test('is read without that number while the engine is away', async () => {
    const { registry } = everything(() => Promise.reject(new Error('away')));
    const text = await registry.metrics();
    expect(text).not.toContain('holdfast_tasks_waiting{');
    expect(text).toContain('holdfast_open_calls 0');
  });

  test('belongs to one gateway', () => {
    const registry = new Registry();
    createGatewayMetrics(registry);
    expect(() => createGatewayMetrics(registry)).toThrow(/already been registered/);
  });
});

test.each([
  ['completed', { content: [] }],
  ['completed', { content: [], structuredContent: { done: false } }],
  ['failed', { content: [], isError: true, _meta: { 'holdfast/task': {} } }],
  ['refused', { content: [], isError: true }],
  ['handed_over', { content: [], structuredContent: { done: false, failed: false, callAgain: false } }],
  ['handed_over', { content: [], resultType: 'task' }],
  ['asked', { content: [], resultType: 'input_required' }],
] as const)('an answer counts as %s: %j', (end, result) => {
  expect(endOf(result as unknown as Parameters<typeof endOf>[0])).toBe(end);
});
