/**
 * What was read before an effect, kept so that whoever undoes it, in whatever process and however much later, knows how
 * it was.
 */
import type { JsonObject } from '../task/json.ts';

export interface BeforeStore {
  /**
   * Durable when it answers. The first one stands: what a later attempt reads may already show the effect. Answers what
   * stands.
   */
  keep(operationId: string, tenant: string, before: JsonObject): Promise<JsonObject>;
  recall(operationId: string): Promise<JsonObject | null>;
  /** Only where no execution of the operation can have applied anything, so that the next one reads anew. */
  forget(operationId: string): Promise<void>;
}
