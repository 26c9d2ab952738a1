/** S8.3: the newest fence seen for a resource. */
import type { Kysely } from 'kysely';
import type { HeldLease } from '../task/claim.ts';
import type { Schema } from './schema.ts';
import type { Tx } from './store.ts';

/** True when `fence` is at least the newest seen: its holder may write, as often as it likes. */
export async function advanceFence(tx: Tx, resource: string, fence: number): Promise<boolean> {
  const now = await tx.now();
  const advanced = await tx.kysely
    .insertInto('fence')
    .values({ resource, fence, updated_at: now })
    .onConflict((conflict) =>
      conflict.column('resource').doUpdateSet({ fence, updated_at: now }).where('fence.fence', '<=', fence),
    )
    .returning('fence')
    .execute();
  return advanced.length > 0;
}

/** 0 where none was. */
export async function newestFence(db: Kysely<Schema>, resource: string): Promise<number> {
  const row = await db
    .selectFrom('fence')
    .select('fence')
    .where('resource', '=', resource)
    .executeTakeFirst();
  return row?.fence ?? 0;
}

/**
 * Before a write under a lease, in its transaction: null when its fence is at least the newest seen, which it then is;
 * else the newest, and nothing may be written. Locked after the operation's row and its chain head (S10.2).
 */
export async function overtakenBy(tx: Tx, lease: HeldLease | undefined): Promise<number | null> {
  if (lease === undefined || (await advanceFence(tx, lease.id, lease.fence))) return null;
  return newestFence(tx.kysely, lease.id);
}
