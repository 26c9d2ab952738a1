/**
 * The hash chain of one task's audit (S10.1). Pure.
 *
 * `hash = hex(sha256(utf8(previous + "\n" + entry)))`, where `previous` is the hash of the entry before, or 64 zeros, and
 * `entry` the RFC 8785 text of `{at, data, operationId, seq, taskId, tenant, type}`. All of it is stored as text, so the
 * bytes are the same before and after a database.
 */
import { createHash } from 'node:crypto';
import { canonicalText } from '../contract/canonical.ts';
import type { JsonObject } from '../task/json.ts';
import type { AuditEntry } from './ledger.ts';
import type { ChainHead } from './store.ts';

/** The head of a chain without entries. */
export const EMPTY_CHAIN: ChainHead = { seq: 0, hash: '0'.repeat(64) };

type Unhashed = Omit<AuditEntry, 'hash'>;

export function hashOf(previous: string, entry: Unhashed): string {
  const { at, data, operationId, seq, taskId, tenant, type } = entry;
  const text = canonicalText({ at, data, operationId, seq, taskId, tenant, type });
  return createHash('sha256').update(`${previous}\n${text}`, 'utf8').digest('hex');
}

/** The entries that follow `head`, numbered and chained, and the head after them. */
export function extendChain(
  head: ChainHead,
  about: { taskId: string; operationId: string; tenant: string; at: string },
  events: readonly { type: string; data: JsonObject }[],
): { entries: AuditEntry[]; head: ChainHead } {
  const entries: AuditEntry[] = [];
  let { seq, hash } = head;
  for (const { type, data } of events) {
    seq += 1;
    const entry = { ...about, seq, type, data };
    hash = hashOf(hash, entry);
    entries.push({ ...entry, hash });
  }
  return { entries, head: { seq, hash } };
}

/** The first thing wrong with one task's chain, or null. `entries` in the order of their numbers. */
export function firstBreak(
  entries: readonly AuditEntry[],
  head: ChainHead,
): { seq: number; reason: string } | null {
  let { seq, hash } = EMPTY_CHAIN;
  for (const entry of entries) {
    seq += 1;
    if (entry.seq !== seq) return { seq, reason: 'the entry is missing' };
    hash = hashOf(hash, entry);
    if (entry.hash !== hash) return { seq, reason: 'the entry does not fit its hash and the entry before' };
  }
  if (head.seq > seq) return { seq: seq + 1, reason: 'the entry is missing; the chain’s head counts it' };
  if (head.seq !== seq || head.hash !== hash)
    return { seq, reason: 'the entry is not the one the chain’s head names' };
  return null;
}
