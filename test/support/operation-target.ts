/** The world of the operation tests: it counts for itself what was done to it, and is the only oracle of "once". */
export class Target {
  /** Effects per operation id, as they took place. */
  readonly effects = new Map<string, number>();
  readonly undone = new Map<string, number>();
  private readonly dedupes: boolean;
  private readonly values = new Map<string, number>();

  /** `dedupes`: by operation id, as the target of a `conditional` action does. */
  constructor(dedupes: boolean) {
    this.dedupes = dedupes;
  }

  get total(): number {
    return [...this.effects.values()].reduce((sum, each) => sum + each, 0);
  }

  apply(operationId: string, amount: number): { id: string; amount: number } {
    if (!this.dedupes || !this.values.has(operationId)) {
      this.effects.set(operationId, (this.effects.get(operationId) ?? 0) + 1);
      this.values.set(operationId, amount);
    }
    return { id: operationId, amount: this.values.get(operationId) ?? amount };
  }

  undo(operationId: string): void {
    if (!this.values.delete(operationId)) return;
    this.undone.set(operationId, (this.undone.get(operationId) ?? 0) + 1);
  }

  /** Undefined when the operation's effect does not stand. */
  valueOf(operationId: string): number | undefined {
    return this.values.get(operationId);
  }
}
