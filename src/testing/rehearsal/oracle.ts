/** The target's own count (S6.6): asked through the user's functions, and believed only where it is a whole number. */
import type { RehearsedCall, Rehearsal } from '../../contract/rehearsal.ts';
import type { Ledger } from '../../ledger/ledger.ts';
import type { ActionContract } from '../../contract/define-action.ts';

export interface Counted {
  /** Null: the target could not be asked; `problem` says why. */
  effects: number | null;
  undone: number | null;
  problem: string | null;
}

export type Oracle = (operationId: string, call: RehearsedCall) => Promise<Counted>;

export function oracleOf(
  { count, undone }: Pick<Rehearsal, 'count' | 'undone'>,
  { transactional }: Pick<ActionContract, 'transactional'>,
  ledger: Pick<Ledger, 'transaction'>,
): Oracle {
  const ask = async (operationId: string, call: RehearsedCall): Promise<Counted> => ({
    effects: whole('count', await count(operationId, call)),
    undone: undone === undefined ? null : whole('undone', await undone(operationId, call)),
    problem: null,
  });
  return async (operationId, call) => {
    try {
      if (!transactional) return await ask(operationId, call);
      return await ledger.transaction((_transitions, tx) => ask(operationId, { ...call, tx }));
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      return { effects: null, undone: null, problem: `the target could not be asked for its count: ${why}` };
    }
  };
}

function whole(name: string, answer: unknown): number {
  if (typeof answer === 'number' && Number.isSafeInteger(answer) && answer >= 0) return answer;
  throw new Error(`\`${name}\` answered ${String(answer)}, which is no count`);
}
