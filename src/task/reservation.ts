import type { Json } from './json.ts';
import type { EffectClass, Principal } from './plan.ts';

/** S1.5: insert or find the row before a workflow is started. */
export interface Reservation {
  operationId: string;
  principal: Principal;
  action: string;
  key: string;
  keyed: boolean;
  contractVersion: number;
  effect: EffectClass;
  fingerprint: { sent: string; input: string };
  /** Already redacted: canonical JSON with keyed hashes at sensitive leaves. */
  arguments: Json;
  /** M1.4: open calls with equal arguments of this principal attach; false switches that off. Keyless calls only. */
  attach: boolean;
  /** For a task started bare: the workflow's own id instead of the derived one. */
  taskId?: string;
}
