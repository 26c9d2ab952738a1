/** The real thing for the conformance suite: Temporal, a worker, a ledger and a gateway over HTTP, with its fixtures. */
import { join } from 'node:path';
import { z } from 'zod';
import { createGateway, toolOf } from '../../src/gateway/index.ts';
import type { ToolSpec } from '../../src/gateway/index.ts';
import { defineProcedure } from '../../src/index.ts';
import type { JsonObject } from '../../src/index.ts';
import { createTestHoldfast } from '../../src/testing/index.ts';
import { conformanceActions } from './actions.ts';

const multiInput = defineProcedure({
  name: 'multi_input',
  description: 'Asks two things at once.',
  input: z.object({}),
});

export interface ConformanceGateway {
  url: string;
  close(): Promise<void>;
}

export async function openConformanceGateway(): Promise<ConformanceGateway> {
  const procedures = { code: join(import.meta.dirname, 'procedures.ts'), contracts: [multiInput] };
  const holdfast = await createTestHoldfast({ actions: conformanceActions, procedures, server: 'local' });
  const gateway = createGateway({
    client: holdfast.client,
    tools: [
      ...[...conformanceActions, multiInput].map(({ contract }) => published(toolOf(contract))),
      ...FOREIGN,
    ],
    auth: { kind: 'loopback', principal: { tenant: 'local', subject: 'suite', roles: [] } },
    // The engine's operator: closes this task past Holdfast once its start is durable.
    beforeAnswer: async ({ action, taskId }) => {
      if (action === 'protocol_error_job') await holdfast.temporal.workflow.getHandle(taskId).terminate();
    },
  });
  const close = () => gateway.close().finally(() => holdfast.close());
  try {
    return { url: `${(await gateway.serveHttp({ port: 0 })).url}/mcp`, close };
  } catch (error) {
    await close();
    throw error;
  }
}

const IMAGE = { type: 'image', mimeType: 'image/png', data: 'iVBORw0KGgo=' };
const RESOURCE = {
  type: 'resource',
  resource: { uri: 'test://fixture', mimeType: 'text/plain', text: 'embedded' },
};

/** Another server's tools, as a gateway passes them on: what no action of our own answers. */
const FOREIGN = Object.entries({
  test_image_content: [IMAGE],
  test_audio_content: [{ type: 'audio', mimeType: 'audio/wav', data: 'UklGRg==' }],
  test_embedded_resource: [RESOURCE],
  test_multiple_content_types: [{ type: 'text', text: 'both' }, IMAGE, RESOURCE],
}).map(([name, content]): ToolSpec => ({
  name,
  description: name,
  effect: 'safe',
  isReversible: false,
  direct: () => Promise.resolve({ content }),
  publishSchema: () => ({ type: 'object', properties: {} }),
}));

const published = (tool: ToolSpec): ToolSpec =>
  tool.name === 'json_schema_2020_12_tool' ? { ...tool, publishSchema: () => JSON_SCHEMA } : tool;

const JSON_SCHEMA: JsonObject = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: {
      $anchor: 'addressDef',
      type: 'object',
      properties: { street: { type: 'string' }, city: { type: 'string' } },
    },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};
