/**
 * One upstream tool as an action: its contract from the published schema and the configuration, its handlers from the
 * compiled promises.
 *
 * Invariants:
 * 1. What is not configured is unsafe, and is never sent again once it was sent.
 * 2. A tool with a defect has no action; the reasons are in its notes (M1.1).
 * 3. The action is named by the server's identity, whatever clients are shown (M8.2).
 */
import { createHash } from 'node:crypto';
import { approvalFor } from '../../contract/approval-policy.ts';
import { canonicalText, tryExactJson } from '../../contract/canonical.ts';
import { defineAction } from '../../contract/define-action.ts';
import type { ActionContract, ApprovalRule } from '../../contract/define-action.ts';
import { HoldfastError } from '../../contract/error.ts';
import { implementAction } from '../../contract/implement-action.ts';
import type { Action } from '../../contract/implement-action.ts';
import { LIMITS } from '../../contract/limits.ts';
import { cut } from '../../contract/text.ts';
import type { UpstreamToolDefinition } from '../../contract/upstream-definition.ts';
import { z } from 'zod';
import type { JsonObject } from '../../task/json.ts';
import type { Expression } from '../cel/expression.ts';
import { marked } from '../answer.ts';
import { upstreamToolName } from '../tool-name.ts';
import type { UpstreamTool } from '../upstream.ts';
import { compilePromises, isUndoing } from './compile-promises.ts';
import type { Site } from './compile-promises.ts';
import type { ToolSite } from './execute.ts';
import { handlersOf } from './handlers.ts';
import { checkedInput, inputCheck } from './input-check.ts';
import { argumentsType, keyArgumentOf, keyIsOptional } from './key-argument.ts';
import { noteConfiguration } from './note-configuration.ts';
import { ToolNotes } from './tool-notes.ts';
import { ToolParts } from './tool-parts.ts';
import type { Peers } from './tool-parts.ts';

export interface ServerSite extends ToolSite {
  /** The entry's name, which clients see. */
  name: string;
  identity: string;
  peers: Peers;
  /** Tools that are declared to read only. */
  safeTools: ReadonlySet<string>;
  isHttp: boolean;
}

export interface CompiledTool {
  tool: UpstreamTool;
  /** What applies to it: its own entry, and what holds for all tools of the server. */
  definition: UpstreamToolDefinition;
  /** Shown to clients. */
  displayName: string;
  /** The ledger's. */
  actionName: string;
  notes: ToolNotes;
  /** Null where it has a defect. */
  action: Action | null;
}

export function compileTool(
  server: ServerSite,
  tool: UpstreamTool,
  definition: UpstreamToolDefinition,
): CompiledTool {
  const notes = new ToolNotes();
  const actionName = upstreamToolName(server.identity, tool.name);
  const compiled = {
    tool,
    definition,
    displayName: definition.as ?? upstreamToolName(server.name, tool.name),
    actionName,
    notes,
  };
  const site = {
    identity: server.identity,
    tool,
    definition,
    parts: new ToolParts(server.peers, notes),
    notes,
    safeTools: server.safeTools,
  };
  try {
    noteConfiguration(site, server);
    const action = actionOf(server, site, actionName);
    return { ...compiled, action: notes.defects.length === 0 ? action : null };
  } catch (error) {
    noteError(notes, error);
    return { ...compiled, action: null };
  }
}

function actionOf(server: ServerSite, site: Site, name: string): Action | null {
  const promises = compilePromises(site);
  const approval = approvalOf(site);
  if (site.notes.defects.length > 0) return null;
  const contract = contractOf(site, name, approval);
  // Finds what is wrong with the rule now, not when the first call is planned.
  if (site.definition.approval !== undefined)
    approvalFor({ ...contract, approval: () => ruleOf(site.definition) }, {});
  return implementAction(contract, handlersOf(server, promises) as Parameters<typeof implementAction>[1]);
}

function contractOf(site: Site, name: string, approval: ActionContract['approval']): ActionContract {
  const { tool, definition, identity } = site;
  const {
    effect = 'unsafe',
    deadlines,
    retry,
    onCancel,
    cancelAttempt,
    onAbandon,
    lookup,
    verify,
  } = definition;
  const { attach, lease } = definition;
  const resource = resourceOf(site);
  const keyArgument = keyArgumentOf(definition);
  const contract = defineAction({
    name,
    version: versionOf(tool, definition),
    description: cut(
      (tool.description ?? tool.title ?? tool.name).trim() || tool.name,
      LIMITS.descriptionLengthMax.value,
    ),
    input: checkedInput(inputCheck(keyIsOptional(tool, definition)), keyArgument),
    output: z.looseObject({}).overwrite((result) => marked(identity, result)),
    effect,
    ...(effect !== 'safe' && { rollback: rollbackOf(definition) }),
    ...(approval && { approval }),
    deadlines: { attempt: ATTEMPT_MS, ...deadlines },
    ...(retry && { retry }),
    ...(onCancel && { onCancel }),
    ...(cancelAttempt && { cancelAttempt }),
    ...(onAbandon && { onAbandon }),
    ...(attach !== undefined && { attach }),
    ...(resource && { resource, ...(lease !== undefined && { lease }) }),
    ...(lookup && { lookup: lookup.conclusive === true ? 'conclusive' : 'plain' }),
    ...(isVerified(verify)
      ? {}
      : { verify: { none: verify?.none ?? 'no tool of its server is configured to read it back' } }),
  });
  const { sensitive } = definition;
  return Object.freeze({
    ...contract,
    ...(keyArgument !== undefined && { keyArgument }),
    ...(sensitive && { sensitive: { input: sensitive.args ?? [], output: sensitive.result ?? [] } }),
  });
}

/** Longer than an own action's: other people's tools are seldom quick. */
const ATTEMPT_MS = 60_000;

const isVerified = (
  verify: UpstreamToolDefinition['verify'],
): verify is Exclude<typeof verify, { none: string } | undefined> =>
  verify !== undefined && !('none' in verify);

function rollbackOf({ rollback }: UpstreamToolDefinition) {
  if (rollback === undefined)
    return { kind: 'outOfBand' as const, reason: 'no tool of its server is configured to undo it' };
  if ('none' in rollback) return { kind: 'none' as const, reason: rollback.none };
  if ('outOfBand' in rollback) return { kind: 'outOfBand' as const, reason: rollback.outOfBand };
  return { kind: isUndoing(rollback) ? (rollback.kind ?? 'compensate') : 'compensate' };
}

/** Changes with what is published and with what is configured; a task keeps the plan it began with. */
function versionOf(tool: UpstreamTool, definition: UpstreamToolDefinition): number {
  const exact = tryExactJson({ tool, definition });
  const text = exact.ok ? canonicalText(exact.value) : JSON.stringify({ tool, definition });
  return 1 + (createHash('sha256').update(text).digest().readUInt32BE() >>> 1);
}

function ruleOf({ approval }: UpstreamToolDefinition): ApprovalRule {
  const { when: _condition, ...rule } = approval ?? {};
  return rule;
}

/** A condition that can't be judged asks a person. */
function approvalOf({ tool, definition, parts }: Site): ActionContract['approval'] {
  const { approval } = definition;
  if (approval === undefined) return undefined;
  const rule = ruleOf(definition);
  if (approval.when === undefined) return () => rule;
  const variables = { args: argumentsType(tool, definition) };
  const when: Expression | undefined = parts.expression('approval.when', approval.when, 'bool', variables);
  return (args) => {
    const asks = when?.evaluate({ args: args as JsonObject });
    return asks?.ok === true && asks.value === false ? false : rule;
  };
}

/** A name that can't be told starts nothing: the task would work on something that it does not hold. */
function resourceOf({ tool, definition, parts }: Site): ActionContract['resource'] {
  if (definition.resource === undefined) return undefined;
  const variables = { args: argumentsType(tool, definition) };
  const name = parts.expression('resource', definition.resource, 'string', variables);
  return (args) => {
    const told = name?.evaluate({ args: args as JsonObject });
    if (told?.ok === true) return told.value as string;
    throw new Error(`the resource can not be told: ${told?.reason ?? 'it has a defect'}`);
  };
}

function noteError(notes: ToolNotes, error: unknown): void {
  const issues = error instanceof HoldfastError ? error.details['issues'] : undefined;
  if (Array.isArray(issues))
    for (const issue of issues as { field: string; message: string }[])
      notes.refuse(issue.field, issue.message);
  else notes.refuse('(tool)', cut(error instanceof Error ? error.message : String(error), 500));
}
