/**
 * A call that needs no task: a `safe` tool that is answered by another server at once. Its arguments are checked against
 * the schema that was published; its caller's leaving, either clock and our shutdown abort it (M5.3); its progress is the
 * caller's (M4.2); its answer goes on as it came.
 */
import type { CallToolResult } from '@modelcontextprotocol/server';
import { canonicalText } from '../contract/canonical.ts';
import { HoldfastError } from '../contract/error.ts';
import { jsonSchemaCheck } from '../contract/json-schema-check.ts';
import type { JsonSchemaCheck } from '../contract/json-schema-check.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { OpenRequest } from './open-request.ts';
import type { ToolSpec } from './tool-spec.ts';

type Direct = NonNullable<ToolSpec['direct']>;

/** Answers that are another server's own, for whoever counts what came of calls. */
const foreign = new WeakSet<object>();
export const isForeignAnswer = (result: CallToolResult): boolean => foreign.has(result);

export async function callDirectly(
  spec: ToolSpec,
  direct: Direct,
  args: JsonObject,
  request: OpenRequest,
): Promise<CallToolResult> {
  await checkArguments(spec, args);
  const onProgress: Parameters<Direct>[1]['onProgress'] = ({ progress, total, message }) =>
    request.report(message ?? `${progress}${total === undefined ? '' : ` of ${total}`}`);
  try {
    const result = (await direct(args, { signal: request.over, onProgress })) as unknown as CallToolResult;
    foreign.add(result);
    return result;
  } catch (error) {
    if (!request.over.aborted) throw error;
    throw new HoldfastError('deadline_exceeded', `${spec.name} did not answer in time. It changes nothing.`, {
      details: { tool: spec.name },
    });
  }
}

/** By tool; null where the schema can't be compiled, and the server itself is the judge. */
const schemas = new WeakMap<ToolSpec, JsonSchemaCheck | null>();

function schemaOf(spec: ToolSpec): JsonSchemaCheck | null {
  const known = schemas.get(spec);
  if (known !== undefined) return known;
  const schema = compiled(spec);
  schemas.set(spec, schema);
  return schema;
}

function compiled(spec: ToolSpec): JsonSchemaCheck | null {
  try {
    return jsonSchemaCheck(spec.publishSchema());
  } catch {
    return null;
  }
}

async function checkArguments(spec: ToolSpec, args: JsonObject): Promise<void> {
  const bytes = Buffer.byteLength(canonicalText(args));
  const most = LIMITS.argumentBytesMax.value;
  if (bytes > most)
    throw new HoldfastError(
      'payload_too_large',
      `The arguments of ${spec.name} are larger than ${most} bytes.`,
      {
        details: { tool: spec.name, bytes, most },
      },
    );
  const checked = await schemaOf(spec)?.['~standard'].validate(args);
  if (!checked?.issues) return;
  const issues = checked.issues.slice(0, LIMITS.issuesMax.value).map(({ message, path = [] }): Json => ({
    path: path.map((part) => `/${String(typeof part === 'object' ? part.key : part)}`).join(''),
    message,
  }));
  throw new HoldfastError('invalid_arguments', `The arguments of ${spec.name} do not fit its schema.`, {
    details: { issues },
  });
}
