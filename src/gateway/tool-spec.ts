import { questionForms } from '../contract/asked.ts';
import type { QuestionForm } from '../contract/asked.ts';
import type { ActionContract } from '../contract/define-action.ts';
import { jsonSchemaCheck } from '../contract/json-schema-check.ts';
import { inputJsonSchema, withKeyArgument } from '../contract/json-schema.ts';
import type { EffectClass } from '../task/plan.ts';
import type { JsonObject } from '../task/json.ts';

/** One action as a tool. Made from its contract (`toolsOf`) or, later, from an upstream server's list. */
export interface ToolSpec {
  /** The action's name, which is the tool's; 1 to 64 of `A–Z a–z 0–9 _ -`. */
  name: string;
  /** What the ledger knows it by. Default: its name. */
  action?: string;
  title?: string;
  description: string;
  effect: EffectClass;
  /** Undone by Holdfast itself when it must be; shown as `destructiveHint: false`. */
  isReversible: boolean;
  /** M1.4 for this tool: a keyless call meets an open one with equal arguments. Default true; never for `safe`. */
  attach?: boolean;
  /** The tool's own argument for a key, whose value is the call's key where none is given beside it. */
  keyArgument?: string;
  /** Asked of a person, in this order, where a call leaves out any of the fields. */
  questions?: readonly QuestionForm[];
  /** M2.1: only clients that declared the Tasks extension may call it. */
  needsTasks?: boolean;
  /** M5.3 for this tool's keyless calls. Default `continue`; a safe call is always given up with its request. */
  onAbandon?: 'continue' | 'cancel';
  /**
   * Answers a `safe` call at once, without a task: with a result of `tools/call`, which goes on as it is. `signal` aborts
   * when nobody waits any longer. Only for what needs no record, no approval and no verification.
   */
  direct?: (
    args: JsonObject,
    call: {
      signal: AbortSignal;
      onProgress: (progress: { progress: number; total?: number; message?: string }) => void;
    },
  ) => Promise<JsonObject>;
  /**
   * The schema `tools/list` publishes, byte for byte, `idempotencyKey` included where the effect is not `safe`: the same each time;
   * throwing quarantines this tool alone (M1.1).
   */
  publishSchema(): JsonObject;
  /** Of its results, published byte for byte; only where every result that is no error is the tool's own (`direct`). */
  outputSchema?: JsonObject;
}

/** The tool of an action. */
export const toolOf = (contract: ActionContract): ToolSpec => ({
  name: contract.name,
  description: contract.description,
  effect: contract.effect,
  isReversible: contract.rollback.kind === 'inBand' || contract.rollback.kind === 'compensate',
  attach: contract.attach,
  ...(contract.keyArgument !== undefined && { keyArgument: contract.keyArgument }),
  questions: questionForms(contract),
  needsTasks: contract.tasks === 'required',
  onAbandon: contract.onAbandon,
  publishSchema: () => inputJsonSchema(contract),
});

/** A tool of another's server: shown under a name of its own, its schema passed on byte for byte (M1.1, M8.2). */
export interface ForeignTool {
  contract: ActionContract;
  displayName: string;
  title?: string;
  inputSchema: JsonObject;
  outputSchema?: JsonObject;
  direct?: NonNullable<ToolSpec['direct']>;
}

export function foreignToolOf(tool: ForeignTool): ToolSpec {
  const { contract, displayName, title, inputSchema, outputSchema, direct } = tool;
  return {
    ...toolOf(contract),
    name: displayName,
    action: contract.name,
    ...(title !== undefined && { title }),
    ...(direct && { direct }),
    // A recorded call may be answered with its task instead, which fits no schema of the tool's.
    // One that describes no object is none in 2025's MCP.
    ...(direct && isPublishable(outputSchema) && { outputSchema: structuredClone(outputSchema) }),
    publishSchema: () =>
      contract.effect === 'safe'
        ? structuredClone(inputSchema)
        : withKeyArgument(structuredClone(inputSchema)),
  };
}

/** A client of 2025 compiles every one it is shown, and has no tools at all where one does not compile. */
function isPublishable(schema: JsonObject | undefined): schema is JsonObject {
  if (schema?.['type'] !== 'object') return false;
  try {
    jsonSchemaCheck(schema);
    return true;
  } catch {
    return false;
  }
}
