/**
 * The fault target's memory: effects, undos, gates, rules. Owns the counter that is the oracle of every crash test.
 *
 * Invariants:
 * 1. The counter grows exactly when an effect takes place, and never shrinks but by `reset`.
 * 2. `conditional` applies once per operationId; `unsafe` applies as often as it is asked.
 * 3. With a file, every effect and undo is appended to it before it counts, and read back at the start.
 */
import { appendFileSync, existsSync, readFileSync, rmSync } from 'node:fs';
import type { Endpoint, Gate, Mode, Report, RequestRecord, Resource, Rule } from './fault-target-mode.ts';

interface Effect extends Resource {
  hiddenLooks: number;
  hiddenGate: Gate | null;
}

type Line = { type: 'applied'; resource: Resource } | { type: 'undone'; resourceId: string; key: string };

export class FaultTargetBook {
  private readonly effects: Effect[] = [];
  private readonly undos: { resourceId: string; operationId: string; key: string }[] = [];
  private readonly requests: RequestRecord[] = [];
  private rules: (Rule & { left: number })[] = [];
  private readonly gates = new Map<Gate, { isOpen: boolean; arrived: number; wake: (() => void)[] }>();
  private readonly file: string | null;

  constructor(file: string | null) {
    this.file = file;
    if (file === null || !existsSync(file)) return;
    for (const line of readFileSync(file, 'utf8').split('\n').filter(Boolean))
      this.replay(JSON.parse(line) as Line);
  }

  /** Takes the next mode for a request and records that it arrived. */
  receive(endpoint: Endpoint, request: Omit<RequestRecord, 'endpoint' | 'mode'>): Mode {
    const rule = this.rules.find(
      (each) =>
        (each.endpoint ?? 'apply') === endpoint &&
        (each.action === undefined || each.action === request.action) &&
        (each.operationId === undefined || each.operationId === request.operationId),
    );
    if (rule && --rule.left <= 0) this.rules = this.rules.filter((each) => each !== rule);
    const mode: Mode = rule?.mode ?? { kind: 'ok' };
    this.requests.push({ endpoint, ...request, mode: mode.kind });
    return mode;
  }

  addRule(rule: Rule): void {
    this.rules.unshift({ ...rule, left: rule.times ?? Number.POSITIVE_INFINITY });
  }

  apply(
    request: { action: string; operationId: string; value: string; dedupes: boolean },
    mode: Mode,
  ): Resource {
    const earlier = request.dedupes
      ? this.effects.find((each) => each.operationId === request.operationId)
      : undefined;
    if (earlier) return visible(earlier);
    const { action, operationId } = request;
    const value = mode.kind === 'applyOther' ? mode.value : request.value;
    const resource: Resource = {
      resourceId: `r${this.effects.length + 1}`,
      operationId,
      action,
      value,
      undone: false,
    };
    this.write({ type: 'applied', resource });
    const effect: Effect = { ...resource, hiddenLooks: 0, hiddenGate: null };
    if (mode.kind === 'applyUnseen' && 'gate' in mode) effect.hiddenGate = mode.gate;
    if (mode.kind === 'applyUnseen' && 'looks' in mode) effect.hiddenLooks = mode.looks;
    this.effects.push(effect);
    return resource;
  }

  /** Idempotent by `key`, the rollback's own operationId. */
  undo(resourceId: string, key: string): 'undone' | 'unknown_resource' | 'undone_by_another' {
    const effect = this.effects.find((each) => each.resourceId === resourceId);
    if (!effect) return 'unknown_resource';
    if (effect.undone) {
      return this.undos.some((each) => each.resourceId === resourceId && each.key === key)
        ? 'undone'
        : 'undone_by_another';
    }
    this.write({ type: 'undone', resourceId, key });
    effect.undone = true;
    this.undos.push({ resourceId, operationId: effect.operationId, key });
    return 'undone';
  }

  /** What a look-up or read-back shows: nothing while the effect is still hidden from looks. */
  look(find: { operationId: string } | { resourceId: string }): Resource | null {
    const effect = this.effects.findLast((each) =>
      'operationId' in find ? each.operationId === find.operationId : each.resourceId === find.resourceId,
    );
    if (!effect) return null;
    if (effect.hiddenGate !== null && !this.gate(effect.hiddenGate).isOpen) return null;
    if (effect.hiddenLooks > 0) {
      effect.hiddenLooks -= 1;
      return null;
    }
    return visible(effect);
  }

  async pass(gate: Gate): Promise<void> {
    const barrier = this.gate(gate);
    barrier.arrived += 1;
    for (const wake of barrier.wake.splice(0)) wake();
    while (!barrier.isOpen) await new Promise<void>((resolve) => barrier.wake.push(resolve));
  }

  /** Resolves once `count` requests have reached the gate. */
  async reached(gate: Gate, count: number): Promise<void> {
    const barrier = this.gate(gate);
    while (barrier.arrived < count) await new Promise<void>((resolve) => barrier.wake.push(resolve));
  }

  release(gate: Gate): void {
    const barrier = this.gate(gate);
    barrier.isOpen = true;
    for (const wake of barrier.wake.splice(0)) wake();
  }

  report(): Report {
    return {
      total: this.effects.length,
      undoneTotal: this.undos.length,
      applied: tally(this.effects),
      undone: tally(this.undos),
      requests: this.requests,
    };
  }

  /** Forgets everything. What waits at a gate waits for ever: its request belongs to the past. */
  reset(): void {
    for (const list of [this.effects, this.undos, this.requests, this.rules]) list.length = 0;
    this.gates.clear();
    if (this.file !== null) rmSync(this.file, { force: true });
  }

  private gate(name: Gate) {
    const known = this.gates.get(name) ?? { isOpen: false, arrived: 0, wake: [] };
    this.gates.set(name, known);
    return known;
  }

  private write(line: Line): void {
    if (this.file !== null) appendFileSync(this.file, `${JSON.stringify(line)}\n`);
  }

  private replay(line: Line): void {
    if (line.type === 'applied') {
      this.effects.push({ ...line.resource, hiddenLooks: 0, hiddenGate: null });
      return;
    }
    const effect = this.effects.find((each) => each.resourceId === line.resourceId);
    if (!effect) throw new Error(`${String(this.file)} undoes ${line.resourceId}, which it never applied`);
    effect.undone = true;
    this.undos.push({ resourceId: line.resourceId, operationId: effect.operationId, key: line.key });
  }
}

function visible({ resourceId, operationId, action, value, undone }: Effect): Resource {
  return { resourceId, operationId, action, value, undone };
}

function tally(entries: { operationId: string }[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { operationId } of entries) counts[operationId] = (counts[operationId] ?? 0) + 1;
  return counts;
}
