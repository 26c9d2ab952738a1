/** From what a configuration says of one tool to its promises, against the list of its server. */
import type {
  UpstreamAsk,
  UpstreamRollback,
  UpstreamToolDefinition,
  UpstreamVerify,
  UpstreamWay,
} from '../../contract/upstream-definition.ts';
import { answerType } from '../answer.ts';
import type { Expression } from '../cel/expression.ts';
import type { UpstreamTool } from '../upstream.ts';
import type { CompiledCall } from './asking.ts';
import { argumentsType } from './key-argument.ts';
import type { PassedKey, ToolPromises, Verification, Way } from './promises.ts';
import type { ToolNotes } from './tool-notes.ts';
import { TEXT } from './tool-parts.ts';
import type { ToolParts, Variables } from './tool-parts.ts';

/** What one tool's promises are compiled from. */
export interface Site {
  identity: string;
  tool: UpstreamTool;
  definition: UpstreamToolDefinition;
  parts: ToolParts;
  notes: ToolNotes;
  /** Tools of the server that are declared to read only. */
  safeTools: ReadonlySet<string>;
}

/** Undefined members stand for what has a defect, which is noted: such promises must not be used. */
export function compilePromises(site: Site): ToolPromises {
  const { identity, tool, definition, parts } = site;
  const vars = variablesOf(site);
  const before = namedCalls(parts, 'before', definition.before ?? {}, vars.start);
  const promises: Omit<ToolPromises, 'beforeMustSucceed'> = {
    identity,
    tool: tool.name,
    isSafe: definition.effect === 'safe',
    key: passedKey(definition),
    before,
    precondition: preconditionOf(site, vars),
    refused: optional(parts, 'refused', definition.refused, { args: vars.args, result: answerType(tool) }),
    paramsAreJudgedFirst:
      definition.effect === 'safe' || (definition.lookup === undefined && tool.outputSchema === undefined),
    lookup: lookupOf(site, vars),
    verify:
      definition.verify === undefined || 'none' in definition.verify
        ? null
        : verificationOf(site, 'verify', definition.verify, vars.after),
    rollback: rollbackOf(site, vars.undo),
    verifyRollback:
      definition.verifyRollback === undefined
        ? null
        : verificationOf(site, 'verifyRollback', definition.verifyRollback, vars.after),
    hidesResult: (definition.sensitive?.result ?? []).length > 0,
  };
  return { ...promises, beforeMustSucceed: unjudged(promises) };
}

interface StageVariables {
  args: Variables[string];
  /** Before the effect, its own reads not yet made. */
  start: Variables;
  /** With what was read before. */
  sent: Variables;
  /** With the tool's answer. */
  after: Variables;
  undo: Variables;
}

function variablesOf({ tool, definition, parts }: Site): StageVariables {
  const args = argumentsType(tool, definition);
  const start: Variables = { args, operationId: TEXT };
  const sent =
    definition.before === undefined ? start : { ...start, before: parts.answers(definition.before) };
  const after = { ...sent, result: answerType(tool) };
  return { args, start, sent, after, undo: { ...after, rollbackId: TEXT } };
}

const namedCalls = (
  parts: ToolParts,
  field: string,
  asks: Record<string, UpstreamAsk>,
  variables: Variables,
): [string, CompiledCall][] =>
  Object.entries(asks).map(([name, ask]) => [name, parts.call(`${field}.${name}`, ask, variables)]);

function optional(
  parts: ToolParts,
  field: string,
  source: string | undefined,
  variables: Variables,
  wanted: 'bool' | 'string' = 'bool',
): Expression | null {
  return source === undefined ? null : (parts.expression(field, source, wanted, variables) ?? null);
}

function passedKey({ key }: UpstreamToolDefinition): PassedKey | null {
  if (key === undefined || 'natural' in key) return null;
  if ('argument' in key) return { kind: 'argument', name: key.argument };
  return 'header' in key ? { kind: 'header', name: key.header } : { kind: 'meta', name: key.meta };
}

function preconditionOf({ definition, parts }: Site, { sent }: StageVariables): ToolPromises['precondition'] {
  const given = definition.precondition;
  if (given === undefined) return null;
  const { reads, variables } = parts.reads('precondition', given, sent);
  const expression = parts.expression('precondition.holds', given.holds, 'bool', variables);
  const reason = given.reason ?? `not true: ${given.holds.slice(0, 200)}`;
  return expression === undefined ? null : { reads, expression, reason };
}

function lookupOf({ definition, parts }: Site, { sent }: StageVariables): ToolPromises['lookup'] {
  const given = definition.lookup;
  if (given === undefined) return null;
  const { reads, variables } = parts.reads('lookup', given, sent);
  const expression = parts.expression('lookup.applied', given.applied, 'bool', variables);
  const notApplied = optional(parts, 'lookup.notApplied', given.notApplied, variables);
  const result =
    given.result === undefined ? null : parts.arguments('lookup.result', given.result, variables);
  return expression === undefined ? null : { reads, expression, notApplied, result };
}

function verificationOf(
  { parts }: Site,
  field: string,
  given: UpstreamVerify,
  after: Variables,
): Verification | null {
  const { reads, variables } = parts.reads(field, given, after);
  const expression = parts.expression(`${field}.verified`, given.verified, 'bool', variables);
  const notYet = optional(parts, `${field}.notYet`, given.notYet, variables);
  return expression === undefined ? null : { reads, expression, notYet };
}

/** The ways to undo it; null where a person must, or nobody can. */
function rollbackOf(site: Site, undo: Variables): ToolPromises['rollback'] {
  const given = site.definition.rollback;
  if (given === undefined || !isUndoing(given)) return null;
  const named = given.reads === undefined ? {} : { reads: given.reads };
  const { reads, variables } = site.parts.reads('rollback', named, undo);
  const ways =
    'ways' in given
      ? given.ways.map((way, index) => wayOf(site, `rollback.ways.${index}`, way, variables))
      : [wayOf(site, 'rollback', given, variables)];
  return { reads, ways };
}

export const isUndoing = (
  rollback: UpstreamRollback,
): rollback is Exclude<UpstreamRollback, { none: string } | { outOfBand: string }> =>
  !('none' in rollback) && !('outOfBand' in rollback);

function wayOf(site: Site, field: string, way: UpstreamWay, variables: Variables): Way {
  const { parts } = site;
  const { tool, args, steps } = way;
  const calls =
    tool === undefined
      ? (steps ?? []).map((step, index) => parts.call(`${field}.steps.${index}`, step, variables))
      : [parts.call(field, { tool, ...(args && { args }) }, variables)];
  return {
    when: optional(parts, `${field}.when`, way.when, variables),
    steps: calls.map((call) => ({ ...call, isRepeatable: isRepeatable(site, call) })),
    remains: optional(parts, `${field}.remains`, way.remains, variables, 'string'),
  };
}

/** No key goes with a step, so that one which dedupes by a key counts only where it is given the id of the undoing. */
function isRepeatable({ tool: undone, definition, safeTools }: Site, { tool, args }: CompiledCall): boolean {
  const { effect, key } = definition;
  const isNatural = tool === undone.name && effect === 'conditional' && key !== undefined && 'natural' in key;
  const namesUndoing = args.some(([, from]) => 'variables' in from && from.variables.has('rollbackId'));
  return safeTools.has(tool) || isNatural || namesUndoing;
}

/** Readings before the effect whose failure nobody looks at. */
function unjudged(promises: Omit<ToolPromises, 'beforeMustSucceed'>): string[] {
  const { precondition, rollback, verify, verifyRollback, lookup } = promises;
  const expressions = [
    precondition?.expression,
    verify?.expression,
    verifyRollback?.expression,
    lookup?.expression,
    ...(rollback?.ways.map(({ when }) => when) ?? []),
  ];
  const judged = new Set(expressions.flatMap((one) => [...(one?.judgedFailures ?? [])]));
  return promises.before.map(([name]) => name).filter((name) => !judged.has(`before.${name}`));
}
