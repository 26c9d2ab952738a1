/**
 * The parts of one tool's configuration, compiled against what its server lists: expressions over the arguments it takes,
 * calls of tools that exist with arguments they take. What does not fit becomes a note; no part of a tool with a defect
 * is ever used.
 */
import { isJsonObject } from '../../task/json.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import type { UpstreamArgument, UpstreamAsk, UpstreamReads } from '../../contract/upstream-definition.ts';
import { answerType } from '../answer.ts';
import { celTypeOf } from '../cel/cel-type.ts';
import type { CelType } from '../cel/cel-type.ts';
import { CelScope } from '../cel/expression.ts';
import type { Expression, Wanted } from '../cel/expression.ts';
import { closestName } from '../closest-name.ts';
import type { UpstreamTool } from '../upstream.ts';
import type { CompiledCall, CompiledReads } from './asking.ts';
import type { ToolNotes } from './tool-notes.ts';

/** Every tool that the server lists, by name. */
export type Peers = ReadonlyMap<string, UpstreamTool>;
export type Variables = Record<string, CelType>;

export const TEXT: CelType = { kind: 'string' };
const NO_READS: CompiledReads = { one: null, many: [] };

export class ToolParts {
  readonly #peers: Peers;
  readonly #notes: ToolNotes;
  readonly #scopes = new Map<Variables, CelScope>();

  constructor(peers: Peers, notes: ToolNotes) {
    this.#peers = peers;
    this.#notes = notes;
  }

  /** Undefined where it has a defect, which is noted. */
  expression(field: string, source: string, wanted: Wanted, variables: Variables): Expression | undefined {
    let scope = this.#scopes.get(variables);
    if (scope === undefined) this.#scopes.set(variables, (scope = new CelScope(variables)));
    const compiled = scope.compile(source, wanted);
    if ('expression' in compiled) return compiled.expression;
    for (const { at, message } of compiled.problems) this.#notes.refuse(field, message, at);
    return undefined;
  }

  arguments(
    field: string,
    args: Record<string, UpstreamArgument>,
    variables: Variables,
    wanted: (name: string) => Wanted = () => 'json',
  ): CompiledCall['args'] {
    return Object.entries(args).flatMap<CompiledCall['args'][number]>(([name, given]) => {
      if (typeof given !== 'string') return [[name, given]];
      const compiled = this.expression(`${field}.${name}`, given, wanted(name), variables);
      return compiled === undefined ? [] : [[name, compiled]];
    });
  }

  call(field: string, { tool, args = {} }: UpstreamAsk, variables: Variables): CompiledCall {
    const peer = this.#peers.get(tool);
    if (peer === undefined) this.#notes.refuse(`${field}.tool`, this.#unknownTool(tool));
    else this.#checkNames(field, peer, args);
    const types = peer === undefined ? {} : propertiesOf(peer.inputSchema);
    const wanted = (name: string): Wanted => wantedAs(Object.hasOwn(types, name) ? types[name] : undefined);
    return { tool, args: this.arguments(`${field}.args`, args, variables, wanted) };
  }

  /** The calls, and with their answers the variables of what is judged afterwards. */
  reads(
    field: string,
    { tool, args, reads }: UpstreamReads,
    variables: Variables,
  ): { reads: CompiledReads; variables: Variables } {
    if (tool !== undefined) {
      const one = this.call(field, { tool, ...(args && { args }) }, variables);
      return {
        reads: { one, many: [] },
        variables: { ...variables, answer: answerType(this.#peers.get(tool)) },
      };
    }
    if (reads === undefined) return { reads: NO_READS, variables };
    const many = Object.entries(reads).map(
      ([name, ask]) => [name, this.call(`${field}.reads.${name}`, ask, variables)] as [string, CompiledCall],
    );
    return { reads: { one: null, many }, variables: { ...variables, reads: this.answers(reads) } };
  }

  /** What expressions know of several answers by name. */
  answers(asks: Record<string, UpstreamAsk>): CelType {
    const fields = Object.entries(asks).map(
      ([name, { tool }]) => [name, answerType(this.#peers.get(tool))] as const,
    );
    return { kind: 'object', fields: Object.fromEntries(fields) };
  }

  #checkNames(field: string, { name: tool, inputSchema }: UpstreamTool, args: Record<string, unknown>): void {
    const known = Object.keys(propertiesOf(inputSchema));
    for (const name of Object.keys(args)) {
      if (known.includes(name) || isOpen(inputSchema)) continue;
      this.#notes.refuse(`${field}.args.${name}`, unknownArgument(tool, name, known));
    }
    const { required } = inputSchema;
    for (const name of Array.isArray(required) ? required : [])
      if (typeof name === 'string' && !Object.hasOwn(args, name))
        this.#notes.refuse(`${field}.args`, `${tool} needs the argument ${name}`);
  }

  #unknownTool(tool: string): string {
    const closest = closestName(tool, [...this.#peers.keys()]);
    return `the server has no tool ${tool}${closest === null ? '' : `; did you mean ${closest}?`}`;
  }
}

export function unknownArgument(tool: string, name: string, known: readonly string[]): string {
  const closest = closestName(name, known);
  const there = closest === null ? ` it takes ${known.join(', ') || 'none'}` : ` did you mean ${closest}?`;
  return `${tool} takes no argument ${name};${there}`;
}

export const propertiesOf = ({ properties }: JsonObject): JsonObject =>
  isJsonObject(properties) ? properties : {};

/** Takes arguments it does not name on purpose; what merely forgot to forbid them is held to its names. */
export const isOpen = ({ additionalProperties, properties, patternProperties }: JsonObject): boolean =>
  properties === undefined ||
  additionalProperties === true ||
  isJsonObject(additionalProperties) ||
  patternProperties !== undefined;

function wantedAs(schema: Json | undefined): Wanted {
  const { kind } = celTypeOf(schema);
  return kind === 'string' ? 'string' : kind === 'bool' ? 'bool' : 'json';
}
