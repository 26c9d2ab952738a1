/** Checks an export of the audit without any database (S10.4): `holdfast audit verify --file`. Pure. */
import { EMPTY_CHAIN, firstBreak } from './audit-chain.ts';
import type { AuditEntry } from './ledger.ts';

export type ExportVerdict =
  { ok: true; tasks: number; entries: number } | { ok: false; taskId: string; seq: number; reason: string };

/**
 * Every chain from its first entry on; entries may come in any order. An export can't show that a chain's end is missing:
 * compare the last hash of a task with `holdfast audit show` where the database is at hand.
 */
export function verifyAuditExport(entries: readonly AuditEntry[]): ExportVerdict {
  const chains = new Map<string, AuditEntry[]>();
  for (const entry of entries) {
    const chain = chains.get(entry.taskId) ?? [];
    chain.push(entry);
    chains.set(entry.taskId, chain);
  }
  for (const [taskId, chain] of chains) {
    chain.sort((left, right) => left.seq - right.seq);
    const last = chain.at(-1) ?? EMPTY_CHAIN;
    const broken = firstBreak(chain, { seq: last.seq, hash: last.hash });
    if (broken !== null) return { ok: false, taskId, ...broken };
  }
  return { ok: true, tasks: chains.size, entries: entries.length };
}
