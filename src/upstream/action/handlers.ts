/** The handlers of an upstream action: its promises, carried out through the seam. */
import type { AnyHandlers } from '../../contract/handlers.ts';
import type { Json, JsonObject } from '../../task/json.ts';
import { answerIn } from '../answer.ts';
import { execute, taken } from './execute.ts';
import type { ToolSite } from './execute.ts';
import { precondition } from './precondition.ts';
import { lookup, valuesOf, verify } from './proofs.ts';
import type { ToolPromises } from './promises.ts';
import { rollback } from './undo.ts';

export function handlersOf(site: ToolSite, promises: ToolPromises): AnyHandlers {
  const { verify: verification, verifyRollback } = promises;
  const handlers: AnyHandlers = {
    execute: (args: JsonObject, context) => execute(site, promises, args, context),
    remoteResult: (args: JsonObject, given, context) => taken(site, promises, args, answerIn(given), context),
    ...(promises.precondition && {
      precondition: (args: JsonObject, context) => precondition(site, promises, args, context),
    }),
    ...(promises.lookup && {
      lookup: (context) => lookup(site, promises, context.input, context),
    }),
    ...(verification && {
      verify: async (args: JsonObject, result: Json, { operationId, signal }) =>
        verify(site, verification, await valuesOf(site, promises, { args, operationId, result }), signal),
    }),
    ...(promises.rollback && {
      rollback: (args: JsonObject, result: Json, context) => rollback(site, promises, args, result, context),
    }),
    ...(verifyRollback && {
      verifyRollback: async (args: JsonObject, result: Json, { originalOperationId, signal }) => {
        const about = { args, operationId: originalOperationId, result };
        return verify(site, verifyRollback, await valuesOf(site, promises, about), signal);
      },
    }),
  };
  return handlers;
}
