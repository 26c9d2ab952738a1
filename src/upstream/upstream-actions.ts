/**
 * The tools of one server as actions (M8.1). One that can't be one is quarantined with its reasons; the others stay (M1.1).
 *
 * No I/O: the list was read before, and what is compiled of it calls the server only when a task does.
 */
import { HoldfastError } from '../contract/error.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Action } from '../contract/implement-action.ts';
import type { UpstreamDefinition, UpstreamToolDefinition } from '../contract/upstream-definition.ts';
import { isUndoing } from './action/compile-promises.ts';
import { compileTool } from './action/compile-tool.ts';
import type { CompiledTool, ServerSite } from './action/compile-tool.ts';
import { noteText } from './action/tool-notes.ts';
import type { BeforeStore } from './before-store.ts';
import { closestName } from './closest-name.ts';
import type { UpstreamLine, UpstreamTool } from './upstream.ts';

export interface UpstreamToolEntry extends CompiledTool {
  /** Offered to clients; another may still be called by those that are. */
  isOffered: boolean;
  /** Passed through without a record: safe, and not `durable`. */
  isDirect: boolean;
  /** Where it has no action: what it was before its server changed it, for the tasks that began with that (M8.5). */
  fallback: Action | null;
}

export interface CompiledUpstream {
  name: string;
  identity: string;
  tools: UpstreamToolEntry[];
  /** What is wrong with the server's entry as a whole: tools in it that the server does not list. */
  problems: { tool: string; message: string }[];
}

export interface UpstreamSource {
  name: string;
  definition: UpstreamDefinition;
  upstream: UpstreamLine;
  before: BeforeStore;
}

/** `gone`: tools that the server listed once; running tasks may still need them, nobody is offered them (M8.5). */
export function compileUpstream(
  source: UpstreamSource,
  listed: readonly UpstreamTool[],
  gone: readonly UpstreamTool[] = [],
): CompiledUpstream {
  const { name, definition, upstream, before } = source;
  const { identity = name, tools: configured = {} } = definition;
  const peers = new Map([...gone, ...listed].map((tool) => [tool.name, tool]));
  const safeTools = new Set(
    [...peers.keys()].filter((tool) => definitionOf(definition, tool).effect === 'safe'),
  );
  const site: ServerSite = {
    ...{ name, identity, upstream, before, peers, safeTools },
    isHttp: definition.url !== undefined,
  };
  // It, or a tool that it asks, may be what changed.
  const earlier = new Map([...listed, ...gone].map((tool) => [tool.name, tool]));
  const isListed = new Set(listed.map((tool) => tool.name));
  const entries = [...peers.values()].map((tool) => {
    const own = definitionOf(definition, tool.name);
    const compiled = compileTool(site, tool, own);
    return {
      ...compiled,
      fallback:
        compiled.action === null
          ? compileTool({ ...site, peers: earlier }, earlier.get(tool.name) ?? tool, own).action
          : null,
      isOffered: isListed.has(tool.name) && isOffered(definition, tool.name),
      isDirect: isDirect(compiled.definition),
    };
  });
  return {
    name,
    identity,
    tools: withoutDoubles(entries, listed),
    problems: Object.keys(configured)
      .filter((tool) => !isListed.has(tool))
      .map((tool) => ({ tool, message: notListed(tool, [...isListed]) })),
  };
}

/** Why a tool is quarantined; null where it is not. */
export function quarantineOf({ action, actionName, notes }: CompiledTool): HoldfastError | null {
  if (action !== null) return null;
  const why = notes.defects.map(noteText).join('; ') || 'it can not be used';
  return new HoldfastError('invalid_contract', `The tool ${actionName} is quarantined. ${why}`, {
    details: { tool: actionName, issues: notes.defects.map((note) => ({ ...note })) },
  });
}

/** A server may call a tool `constructor`, which every object has. */
const ownEntry = ({ tools = {} }: UpstreamDefinition, tool: string): UpstreamToolDefinition | undefined =>
  Object.hasOwn(tools, tool) ? tools[tool] : undefined;

/** What applies to one tool: its own entry over what holds for all. Nobody is asked about what only reads. */
function definitionOf(server: UpstreamDefinition, tool: string): UpstreamToolDefinition {
  const own = ownEntry(server, tool) ?? {};
  const isSafe = (server.safe ?? []).some((pattern) => matches(pattern, tool));
  const effect = own.effect ?? (isSafe ? 'safe' : 'unsafe');
  return { ...(effect === 'safe' ? termsOfReading(server) : termsOfChanging(server, own)), ...own, effect };
}

function termsOfReading({ defaults: { deadlines, retry } = {} }: UpstreamDefinition): UpstreamToolDefinition {
  return { ...(deadlines && { deadlines }), ...(retry && { retry }) };
}

/** A cancel undoes by default only what can be undone; a tool that asks for more itself is refused. */
function termsOfChanging(
  { defaults = {} }: UpstreamDefinition,
  { rollback }: UpstreamToolDefinition,
): UpstreamToolDefinition {
  const { onCancel, ...rest } = defaults;
  const applies = onCancel === 'keep' || (rollback !== undefined && isUndoing(rollback));
  return { ...rest, ...(onCancel !== undefined && applies && { onCancel }) };
}

/** Passed through without a record, where nothing is promised of it that takes one. */
function isDirect({
  effect,
  durable,
  approval,
  precondition,
  verify,
  resource,
}: UpstreamToolDefinition): boolean {
  const promises = [approval, precondition, verify, resource];
  return effect === 'safe' && durable !== true && promises.every((promise) => promise === undefined);
}

const matches = (pattern: string, tool: string): boolean =>
  pattern.endsWith('*') ? tool.startsWith(pattern.slice(0, -1)) : tool === pattern;

function isOffered(server: UpstreamDefinition, tool: string): boolean {
  const own = ownEntry(server, tool);
  if (own?.hidden === true) return false;
  const isNamed = own !== undefined || (server.safe ?? []).some((pattern) => matches(pattern, tool));
  return isNamed || server.expose !== 'configured';
}

/** A list that names a tool twice says two things about it: neither is believed. */
function withoutDoubles(entries: UpstreamToolEntry[], listed: readonly UpstreamTool[]): UpstreamToolEntry[] {
  const doubles = new Set(
    listed.map(({ name }) => name).filter((name, index, all) => all.indexOf(name) !== index),
  );
  for (const { tool, notes } of entries)
    if (doubles.has(tool.name)) notes.refuse('(list)', 'the server lists it twice');
  return entries.map((entry) => (doubles.has(entry.tool.name) ? { ...entry, action: null } : entry));
}

function notListed(tool: string, listed: string[]): string {
  const closest = closestName(tool, listed);
  return `the server lists no tool of that name${closest === null ? '' : `; did you mean ${closest}?`}`;
}

/** What a server may list. Throws with the bound; what it lists is not taken then. */
export function checkList(server: string, tools: readonly UpstreamTool[]): void {
  const [toolsMax, bytesMax] = [LIMITS.upstreamToolsMax.value, LIMITS.upstreamListBytesMax.value];
  const bytes = Buffer.byteLength(JSON.stringify(tools));
  if (tools.length <= toolsMax && bytes <= bytesMax) return;
  throw new HoldfastError(
    'invalid_configuration',
    `${server} lists ${tools.length} tools in ${bytes} bytes; at most ${toolsMax} in ${bytesMax} are taken.`,
    { details: { server, tools: tools.length, bytes } },
  );
}
