import { expect, test } from 'vitest';
import { callDirectly } from '../../src/gateway/direct-call.ts';
import type { OpenRequest } from '../../src/gateway/open-request.ts';
import type { ToolSpec } from '../../src/gateway/tool-spec.ts';
import type { JsonObject } from '../../src/task/json.ts';

const request = { over: new AbortController().signal, report: () => undefined } as unknown as OpenRequest;

function call(name: string, type: string, args: JsonObject): Promise<unknown> {
  const direct: NonNullable<ToolSpec['direct']> = (given) =>
    Promise.resolve({ content: [], structuredContent: given });
  const spec: ToolSpec = {
    ...{ name, description: name, effect: 'safe', isReversible: false, direct },
    publishSchema: () => ({ $id: 'https://odd.example/tool', type: 'object', properties: { a: { type } } }),
  };
  return callDirectly(spec, direct, args, request);
}

test('[M1.1] two tools whose schemas have the same $id are each checked by their own', async () => {
  await expect(call('first', 'string', { a: 'x' })).resolves.toMatchObject({ structuredContent: { a: 'x' } });
  await expect(call('second', 'number', { a: 1 })).resolves.toMatchObject({ structuredContent: { a: 1 } });
  await expect(call('second', 'number', { a: 'x' })).rejects.toMatchObject({ code: 'invalid_arguments' });
});
