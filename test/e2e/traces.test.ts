// One trace for a call, over three processes: the gateway's, the worker's, and a collector's (this one).
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Client } from '@modelcontextprotocol/client';
import { Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startEmbeddedTemporal } from '../../src/embedded/index.ts';
import { holdfast, startHoldfast } from '../support/holdfast-command.ts';
import type { Place, RunningCommand } from '../support/holdfast-command.ts';
import { connectV2 } from '../support/mcp-clients.ts';
import { answerOf, post } from '../support/mcp-messages.ts';
import { lineOf, startOtlpReceiver } from '../support/otlp-receiver.ts';
import type { OtlpReceiver, ReceivedSpan } from '../support/otlp-receiver.ts';

const CONFIG = fileURLToPath(new URL('../support/traced.config.ts', import.meta.url));
const until = { timeout: 30_000 };

const closers: (() => Promise<unknown>)[] = [];
let collector: OtlpReceiver;
let place: Place;
let connection: Connection;
let namespace: string;

beforeAll(async () => {
  const cwd = mkdtempSync(join(tmpdir(), 'holdfast-traces-'));
  closers.push(() => Promise.resolve(rmSync(cwd, { recursive: true, force: true })));
  const temporal = await startEmbeddedTemporal({ stateDir: join(cwd, 'temporal'), ephemeral: true });
  closers.push(() => temporal.stop());
  ({ namespace } = temporal);
  connection = await Connection.connect({ address: temporal.address });
  closers.push(() => connection.close());
  collector = await startOtlpReceiver();
  closers.push(() => collector.stop());
  place = {
    cwd,
    env: {
      HOLDFAST_CONFIG: CONFIG,
      HOLDFAST_PORT: '0',
      HOLDFAST_LOG_LEVEL: 'warn',
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: namespace,
    },
  };
  expect((await holdfast(place, 'migrate')).code).toBe(0);
});
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

const tracedAs = (service: string): Place => ({
  ...place,
  env: {
    ...place.env,
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: service,
    OTEL_BSP_SCHEDULE_DELAY: '100',
  },
});

async function start(where: Place, command: 'gateway' | 'worker'): Promise<RunningCommand> {
  const running = await startHoldfast(where, command);
  closers.push(() => running.end('SIGKILL'));
  return running;
}

async function connect(gateway: RunningCommand): Promise<Client> {
  const client = await connectV2({ transport: 'http', url: `${gateway.url}/mcp` }, 'modern');
  closers.push(() => client.close());
  return client;
}

let traces = 0;
const newTrace = () => {
  const traceId = (++traces).toString(16).padStart(32, 'a');
  return { traceId, _meta: { traceparent: `00-${traceId}-00000000000000ca-01` } };
};
const spansOf = (traceId: string) => collector.spans().filter((span) => span.traceId === traceId);
/** Its processes send in batches of their own: until the end is here, and every parent but the caller's. */
async function wholeTrace(traceId: string): Promise<ReceivedSpan[]> {
  const missing = () => {
    const spans = spansOf(traceId);
    const known = new Set(['00000000000000ca', ...spans.map(({ spanId }) => spanId)]);
    const parents = spans.map(({ parentSpanId }) => parentSpanId).filter((id) => !known.has(id));
    return named(spans, 'EndWorkflow:action').length === 0 ? ['the end', ...parents] : parents;
  };
  await expect.poll(missing, until).toEqual([]);
  return spansOf(traceId);
}
const named = (spans: ReceivedSpan[], name: string) => spans.filter((span) => span.name === name);

describe('with an OTLP endpoint in the environment of gateway and worker', () => {
  let client: Client;
  let gateway: RunningCommand;
  let worker: RunningCommand;
  beforeAll(async () => {
    worker = await start(tracedAs('a-worker'), 'worker');
    gateway = await start(tracedAs('a-gateway'), 'gateway');
    client = await connect(gateway);
  });
  afterAll(() => worker.end('SIGTERM'));

  const call = (name: string, args: Record<string, unknown>, _meta?: Record<string, unknown>) =>
    client.callTool({ name, arguments: args, ...(_meta && { _meta }) });

  it.each([
    ['traced_dispatched', 'own work', 'attemptOperation'],
    ['traced_inline', 'own inline work', 'attemptOperation'],
  ])(
    'a call of %s is one line from the caller’s trace to the handler’s own span',
    async (tool, own, activity) => {
      const { traceId, _meta } = newTrace();
      const answer = await call(
        tool,
        { text: 'canary argument', idempotencyKey: `canary key ${tool}` },
        _meta,
      );
      const spans = await wholeTrace(traceId);
      expect(lineOf(spans, own)).toEqual([
        own,
        `execute ${tool}`,
        `RunActivity:${activity}`,
        'RunWorkflow:action',
        'StartWorkflow:action',
        `tools/call ${tool}`,
      ]);
      const [served] = named(spans, `tools/call ${tool}`);
      const { taskId, operationId } = answer._meta?.['holdfast/task'] as Record<string, string>;
      expect(served).toMatchObject({
        parentSpanId: '00000000000000ca',
        service: 'a-gateway',
        attributes: {
          'mcp.method.name': 'tools/call',
          'gen_ai.tool.name': tool,
          'holdfast.call.outcome': 'completed',
          'holdfast.task.id': taskId,
          'holdfast.operation.id': operationId,
          'holdfast.task.status': 'completed',
          'holdfast.task.effect': 'applied',
        },
      });
      expect(named(spans, own)[0]).toMatchObject({ service: 'a-worker' });
      expect(named(spans, 'EndWorkflow:action')[0]).toMatchObject({
        attributes: { temporalWorkflowId: taskId, 'holdfast.task.status': 'completed' },
      });
    },
  );

  it('each handler that is called has its span', async () => {
    const { traceId, _meta } = newTrace();
    await call('traced_dispatched', { text: 'x', idempotencyKey: 'each' }, _meta);
    const handlers = (await wholeTrace(traceId)).flatMap(
      ({ attributes }) => attributes['holdfast.handler'] ?? [],
    );
    expect(handlers.sort()).toEqual(['execute', 'precondition', 'verify']);
  });

  it('the HTTP header names the trace where the message does not, and is linked where both do', async () => {
    const [header, message] = [newTrace(), newTrace()];
    const send = async (meta: object) => {
      const args = { text: 'x', idempotencyKey: JSON.stringify(meta) };
      const params = { name: 'traced_inline', arguments: args };
      const headers = { ...header._meta };
      const response = await post(`${gateway.url}/mcp`, { method: 'tools/call', params, meta }, { headers });
      expect((await answerOf(response)).result).toHaveProperty('structuredContent.kept');
    };
    await send({});
    await expect
      .poll(() => named(spansOf(header.traceId), 'tools/call traced_inline'), until)
      .toHaveLength(1);
    await send(message._meta);
    await expect
      .poll(() => named(spansOf(message.traceId), 'tools/call traced_inline'), until)
      .toHaveLength(1);
    expect(named(spansOf(message.traceId), 'tools/call traced_inline')[0]?.links).toMatchObject([
      { traceId: header.traceId },
    ]);
    expect(named(spansOf(header.traceId), 'tools/call traced_inline')).toHaveLength(1);
  });

  it('a wait for a person holds no span open, and its trace goes on in another worker without a span twice', async () => {
    const { traceId, _meta } = newTrace();
    const answer = await call('traced_approved', { text: 'x', idempotencyKey: 'approved' }, _meta);
    const { taskId } = answer._meta?.['holdfast/task'] as { taskId: string };
    // What has begun is told before anybody decides.
    await expect.poll(() => named(spansOf(traceId), 'RunWorkflow:action'), until).toHaveLength(1);
    await worker.end('SIGKILL');
    worker = await start(tracedAs('another-worker'), 'worker');
    expect((await holdfast(place, 'task', 'approve', taskId)).code).toBe(0);
    const spans = await wholeTrace(traceId);
    expect(lineOf(spans, 'own approved work')).toContain('tools/call traced_approved');
    expect(named(spans, 'own approved work')).toMatchObject([{ service: 'another-worker' }]);
    expect(named(spans, 'RunWorkflow:action')).toHaveLength(1);
    expect(new Set(spans.map(({ spanId }) => spanId)).size).toBe(spans.length);
  });

  it('no argument, result, key or message of an error is in a span [S2.10]', async () => {
    const { traceId, _meta } = newTrace();
    const answer = await call(
      'traced_failing',
      { text: 'canary argument', idempotencyKey: 'canary key' },
      _meta,
    );
    expect(JSON.stringify(answer)).toContain('canary message');
    const spans = await wholeTrace(traceId);
    expect(named(spans, 'execute traced_failing')).toMatchObject([
      { isError: true, attributes: { 'error.type': 'permanent' } },
    ]);
    expect(named(spans, 'tools/call traced_failing')).toMatchObject([{ isError: true }]);
    expect(collector.raw()).not.toContain('canary');
  });
});

describe('without', () => {
  it('nothing is sent, and a start carries no header', async () => {
    const before = collector.spans().length;
    const { traceId, _meta } = newTrace();
    await start(place, 'worker');
    const client = await connect(await start(place, 'gateway'));
    const answer = await client.callTool({
      name: 'traced_dispatched',
      arguments: { text: 'x', idempotencyKey: 'off' },
      _meta,
    });
    const { taskId } = answer._meta?.['holdfast/task'] as { taskId: string };
    expect(await headersOfStart(taskId)).toEqual([]);
    expect(spansOf(traceId)).toEqual([]);
    expect(collector.spans().length).toBe(before);
  });
});

async function headersOfStart(workflowId: string): Promise<string[]> {
  const { history } = await connection.workflowService.getWorkflowExecutionHistory({
    namespace,
    execution: { workflowId },
  });
  const [first] = history?.events ?? [];
  return Object.keys(first?.workflowExecutionStartedEventAttributes?.header?.fields ?? {});
}
