/**
 * A result as it may be kept: numbers that JSON can not keep exactly are withheld, never rounded (M1.6). What the tool did
 * stands all the same, so the rest of its answer does too, with words on what is missing.
 *
 * Seen are integers beyond 2^53 (read already, they are no longer what was sent), numbers beyond a double, and lone
 * surrogates. A key that was there twice and a number too small for a double left no trace in what the SDK has read.
 */
import { tryExactJson } from '../../contract/canonical.ts';
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';

export function exactResult(result: JsonObject): JsonObject {
  let kept = result;
  // Each round takes one part away; a result has no more parts than rounds.
  for (let round = partsOf(result); round >= 0; round -= 1) {
    const exact = tryExactJson(kept);
    if (exact.ok) return isJsonObject(exact.value) ? exact.value : {};
    kept = withheld(kept, exact.issue.path);
  }
  return { content: [note('')], ...(result.isError === true && { isError: true }) };
}

const contentOf = ({ content }: JsonObject): Json[] => (Array.isArray(content) ? content : []);
const partsOf = (result: JsonObject): number => Object.keys(result).length + contentOf(result).length;

function withheld(result: JsonObject, path: string): JsonObject {
  const [, member = '', index = ''] = path.split('/');
  const content = contentOf(result);
  if (member === 'content' && index !== '')
    return { ...result, content: content.map((block, at) => (at === Number(index) ? note(path) : block)) };
  const { [member]: _withheld, ...others } = result;
  return { ...others, content: [...(member === 'content' ? [] : content), note(path)] };
}

const note = (path: string): JsonObject => ({
  type: 'text',
  text: `A part of this answer was withheld: ${path || 'it'} can not be kept exactly. Ask for large numbers as strings.`,
});
