/** Values against a JSON Schema that others wrote, by the MCP SDK's own validator. */
import { fromJsonSchema } from '@modelcontextprotocol/server';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/server/validators/ajv';
import type { JsonObject } from '../task/json.ts';

export type JsonSchemaCheck = ReturnType<typeof fromJsonSchema>;

/**
 * Each with a validator of its own: a shared one takes two schemas of the same `$id` for one, and would check one tool's
 * arguments by another's. Throws where the schema is none, or refers to another document.
 */
export const jsonSchemaCheck = (schema: JsonObject): JsonSchemaCheck =>
  fromJsonSchema(schema, new AjvJsonSchemaValidator());
