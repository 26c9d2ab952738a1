/**
 * From a contract's `decision` to the budget that one decision has, frozen into its plan (S3.7). Pure.
 *
 * Fails closed: a `costOf` that throws or answers no cost permits no ask.
 */
import type { JsonObject } from '../task/json.ts';
import type { PlanDecision } from '../task/plan.ts';
import type { ActionContract } from './define-action.ts';
import { HoldfastError } from './error.ts';

/** Throws `invalid_contract`. */
export function decisionBudget(contract: ActionContract, input: JsonObject): PlanDecision {
  const { asksMax, intervalMs, costMax } = contract.decision;
  const cost = costMax === null ? 0 : costOf(contract, input);
  const affordable = costMax === null || cost === 0 ? asksMax : Math.floor(costMax / cost);
  return { asksMax: Math.min(asksMax, affordable), intervalMs };
}

function costOf(contract: ActionContract, input: JsonObject): number {
  const { name, decision } = contract;
  let cost: unknown;
  try {
    cost = decision.costOf?.(structuredClone(input));
  } catch (cause) {
    throw invalid(name, 'threw', cause);
  }
  if (typeof cost === 'number' && Number.isFinite(cost) && cost >= 0) return cost;
  throw invalid(name, 'must answer a number of 0 or more, at once');
}

function invalid(name: string, problem: string, cause?: unknown): HoldfastError {
  const message = `decision.costOf of ${name} ${problem}; nothing was asked.`;
  return new HoldfastError('invalid_contract', message, { cause });
}
