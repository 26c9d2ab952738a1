/** S8.3: the newest fence seen for a resource. */
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
