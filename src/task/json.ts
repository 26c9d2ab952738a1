/** Any value that survives a round trip through JSON unchanged. The only kind of value that crosses a boundary. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
/** A JSON object: what arguments and error details always are. */
export type JsonObject = { [key: string]: Json };

/** Of a value that is JSON already: no array, not null. */
export const isJsonObject = (value: Json | undefined): value is JsonObject =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
