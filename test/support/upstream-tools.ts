/** Tools of an upstream as a gateway's, called at once and without a task. */
import type { ToolSpec } from '../../src/gateway/index.ts';
import { directCall } from '../../src/upstream/direct-call.ts';
import type { Upstream } from '../../src/upstream/upstream.ts';

export const directTools = (prefix: string, upstream: Upstream): ToolSpec[] =>
  ['echo', 'fails', 'refuses', 'hangs', 'steps', 'works', 'count'].map((tool) => ({
    name: `${prefix}_${tool}`,
    description: tool,
    effect: 'safe',
    isReversible: false,
    direct: directCall(upstream, tool),
    publishSchema: () => ({ type: 'object', properties: { text: { type: 'string' } } }),
  }));
