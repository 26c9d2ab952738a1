/** A tool's answer: as a task's result keeps it, and as expressions see it. */
import { isJsonObject } from '../task/json.ts';
import type { Json, JsonObject } from '../task/json.ts';
import { celTypeOf, DYN } from './cel/cel-type.ts';
import type { CelType } from './cel/cel-type.ts';
import { UPSTREAM_META } from '../contract/wire-names.ts';
import type { UpstreamReply, UpstreamTool } from './upstream.ts';

export type ToolAnswer = Extract<UpstreamReply, { kind: 'answer' }>;

/** What a task keeps of an answer: MCP's own form, with the mark and without what calls itself ours. */
export function marked(identity: string, answer: Record<string, unknown>): Record<string, unknown> {
  const { content, structuredContent, isError, _meta } = answer;
  return {
    content: Array.isArray(content) ? content : [],
    ...(structuredContent !== undefined && { structuredContent }),
    ...(isError === true && { isError }),
    _meta: {
      ...notOurs(_meta),
      [UPSTREAM_META]: identity,
    },
  };
}

/** `answer` without what in its `_meta` calls itself ours. */
export const withoutMarks = (answer: JsonObject): JsonObject =>
  answer['_meta'] === undefined ? answer : { ...answer, _meta: notOurs(answer['_meta']) };

const notOurs = (meta: unknown): JsonObject =>
  Object.fromEntries(
    Object.entries(isJsonObject(meta as Json) ? (meta as JsonObject) : {}).filter(
      ([key]) => !key.startsWith('holdfast/'),
    ),
  );

/** The result of a call whose answer was lost, as a lookup tells it. */
export const lookedUpResult = (structured: JsonObject): JsonObject => ({
  content: [{ type: 'text', text: JSON.stringify(structured) }],
  structuredContent: structured,
});

/** What a server's own task ended with, as the answer that it is. */
export const answerIn = (raw: JsonObject): ToolAnswer => ({
  kind: 'answer',
  raw,
  isError: raw['isError'] === true,
  content: Array.isArray(raw['content']) ? raw['content'] : [],
  structured: raw['structuredContent'] ?? null,
});

/** As expressions see it: `structured` is absent where the tool gave none. */
export const shownAnswer = ({ content, structured, isError }: ToolAnswer): JsonObject => ({
  ...(structured !== null && { structured }),
  text: textOf(content),
  isError,
  content,
});

/** The same of a kept result; null where that was dropped or can not be read. */
export function shownResult(result: Json): JsonObject | null {
  if (!isJsonObject(result) || !Array.isArray(result['content'])) return null;
  const { content, structuredContent, isError } = result;
  return {
    ...(structuredContent !== undefined && { structured: structuredContent }),
    text: textOf(content),
    isError: isError === true,
    content,
  };
}

/** All text blocks, one below the other. */
const textOf = (content: Json[]): string =>
  content
    .flatMap((block) => (isJsonObject(block) && typeof block['text'] === 'string' ? [block['text']] : []))
    .join('\n');

/** What expressions know of the answers of `tool`. */
export function answerType(tool: UpstreamTool | undefined): CelType {
  const schema = tool?.outputSchema;
  const structured = schema === undefined ? DYN : celTypeOf(schema, schema);
  return {
    kind: 'object',
    fields: {
      structured,
      text: { kind: 'string' },
      isError: { kind: 'bool' },
      content: { kind: 'list', of: DYN },
    },
  };
}
