import type { JsonObject } from '../../src/task/json.ts';
import type { BeforeStore } from '../../src/upstream/before-store.ts';

export class BeforeInMemory implements BeforeStore {
  readonly kept = new Map<string, JsonObject>();

  keep(operationId: string, _tenant: string, before: JsonObject): Promise<JsonObject> {
    const first = this.kept.get(operationId) ?? structuredClone(before);
    this.kept.set(operationId, first);
    return Promise.resolve(structuredClone(first));
  }

  recall(operationId: string): Promise<JsonObject | null> {
    return Promise.resolve(structuredClone(this.kept.get(operationId) ?? null));
  }

  forget(operationId: string): Promise<void> {
    this.kept.delete(operationId);
    return Promise.resolve();
  }
}
