/** The tools of a server, page by page. What has no name or no schema is left out: nobody could call it. */
import { HoldfastError } from '../../contract/error.ts';
import { LIMITS } from '../../contract/limits.ts';
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import type { UpstreamTool } from '../upstream.ts';

/** `page` reads one; rejects where it can't. Rejects with `invalid_configuration` a list beyond `upstreamToolsMax`. */
export async function readTools(
  page: (params: JsonObject) => Promise<JsonObject>,
  leftOut: (name: Json | undefined) => void,
): Promise<UpstreamTool[]> {
  const tools: UpstreamTool[] = [];
  const most = LIMITS.upstreamToolsMax.value;
  // A page may be empty; a list of more pages than tools may be is none.
  for (let [pages, cursor] = [0, undefined as Json | undefined]; pages <= most; pages += 1) {
    const { tools: listed, nextCursor } = await page(cursor === undefined ? {} : { cursor });
    for (const each of Array.isArray(listed) ? listed : []) {
      const tool = isJsonObject(each) ? toolOf(each) : null;
      if (tool) tools.push(tool);
      else leftOut(isJsonObject(each) ? each.name : undefined);
    }
    if (tools.length > most) break;
    if (typeof nextCursor !== 'string') return tools;
    cursor = nextCursor;
  }
  throw new HoldfastError('invalid_configuration', `The server lists more than ${most} tools.`, {
    details: { limit: 'upstreamToolsMax', most },
  });
}

function toolOf(listed: JsonObject): UpstreamTool | null {
  const { name, title, description, inputSchema, outputSchema, annotations, execution } = listed;
  if (typeof name !== 'string' || name === '' || !isJsonObject(inputSchema)) return null;
  const support = isJsonObject(execution) ? execution.taskSupport : undefined;
  return {
    name,
    inputSchema,
    ...(typeof title === 'string' && { title }),
    ...(typeof description === 'string' && { description }),
    ...(isJsonObject(outputSchema) && { outputSchema }),
    ...(isJsonObject(annotations) && { annotations }),
    ...((support === 'forbidden' || support === 'optional' || support === 'required') && {
      taskSupport: support,
    }),
  };
}
