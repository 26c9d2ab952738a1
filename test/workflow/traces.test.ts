/** A program that has its own TracerProvider and opens Holdfast within: it traces, and the provider stays the program's. */
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { context, propagation, trace } from '@opentelemetry/api';
import { W3CTraceContextPropagator } from '@opentelemetry/core';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import type { ReadableSpan } from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openTestServer } from '../../src/testing/index.ts';
import type { TestServer } from '../../src/testing/index.ts';
import { AsyncContext } from '../../worker/async-context.ts';
import { loadConfig, openHoldfast } from '../../worker/index.ts';
import type { Holdfast } from '../../worker/index.ts';

const ann = { tenant: 'local', subject: 'ann', roles: [] };
const exporter = new InMemorySpanExporter();
let server: TestServer;
let cwd: string;
let holdfast: Holdfast;
const taskQueue = `q-${randomUUID()}`;

beforeAll(async () => {
  new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }).register({
    contextManager: new AsyncContext(),
    propagator: new W3CTraceContextPropagator(),
  });
  server = await openTestServer('local');
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-traces-'));
  const env = {
    HOLDFAST_CONFIG: fileURLToPath(new URL('../support/traced.config.ts', import.meta.url)),
    HOLDFAST_TASK_QUEUE: taskQueue,
    HOLDFAST_LOG_LEVEL: 'fatal',
    TEMPORAL_ADDRESS: new URL(`http://${server.env.address}`).host,
  };
  holdfast = await openHoldfast({ config: await loadConfig({ cwd, env }), worker: true, migrate: true });
});
afterAll(async () => {
  await server.close();
  rmSync(cwd, { recursive: true, force: true });
  for (const api of [trace, context, propagation]) api.disable();
});

const named = (name: string): ReadableSpan[] =>
  exporter.getFinishedSpans().filter((span) => span.name === name);
const parentOf = (name: string): string | undefined =>
  exporter.getFinishedSpans().find((span) => span.spanContext().spanId === named(name)[0]?.parentSpanId)
    ?.name;

test('its spans go to the registered provider, below the span that is active where a task is started', async () => {
  const taskId = await trace.getTracer('a program').startActiveSpan('its own', async (span) => {
    const args = { text: 'canary argument' };
    const started = await holdfast.client.start({
      action: 'traced_dispatched',
      args,
      key: 'k',
      principal: ann,
    });
    span.end();
    return started.taskId;
  });
  await holdfast.client.wait(taskId, ann, { timeoutMs: 20_000 });
  await expect.poll(() => named('EndWorkflow:action')).toHaveLength(1);
  const line = [
    'own work',
    'execute traced_dispatched',
    'RunActivity:attemptOperation',
    'StartWorkflow:action',
  ];
  expect(line.map(parentOf)).toEqual([...line.slice(1), 'its own']);
  // Its ids are its own, so nothing can name the run's span as parent.
  expect(parentOf('RunWorkflow:action')).toBe('StartWorkflow:action');
});

test('[S2.10] what an activity throws leaves its type in the span, and neither message nor stack', async () => {
  const handle = await holdfast.temporal.workflow.start('action', {
    workflowId: randomUUID(),
    taskQueue,
    args: [{ v: 1, action: 'canary_action', input: {}, principal: ann }],
  });
  await expect.poll(() => named('RunActivity:planTask').length, { timeout: 20_000 }).toBeGreaterThan(0);
  await handle.terminate();
  const [span] = named('RunActivity:planTask');
  expect(span).toMatchObject({
    status: { code: 2 },
    events: [],
    attributes: { 'error.type': 'unknown_action' },
  });
  expect(JSON.stringify({ ...span?.status, ...span?.attributes })).not.toContain('canary');
});

test('closing leaves the provider to its program', async () => {
  await holdfast.close();
  const before = exporter.getFinishedSpans().length;
  trace.getTracer('a program').startSpan('afterwards').end();
  expect(exporter.getFinishedSpans().length).toBe(before + 1);
});
