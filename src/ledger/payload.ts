/** Results too large for a history (interfaces.md "Sizes"): by content, so that a repeat stores nothing twice. */
import { createHash } from 'node:crypto';
import type { Kysely } from 'kysely';
import { HoldfastError } from '../contract/error.ts';
import { LIMITS } from '../contract/limits.ts';
import type { Schema } from './schema.ts';
import type { Tx } from './store.ts';

export async function putPayload(
  tx: Tx,
  tenant: string,
  value: string,
): Promise<{ sha256: string; bytes: number }> {
  const content = Buffer.from(value, 'utf8');
  const bytesMax = LIMITS.resultStoredBytesMax.value;
  if (content.length > bytesMax) {
    throw new HoldfastError(
      'payload_too_large',
      `A payload of ${content.length} bytes is beyond ${bytesMax}.`,
      {
        details: { bytes: content.length, bytesMax },
      },
    );
  }
  const sha256 = createHash('sha256').update(content).digest('hex');
  await tx.kysely
    .insertInto('payload')
    .values({ tenant, sha256, bytes: content.length, value: content, created_at: await tx.now() })
    .onConflict((conflict) => conflict.columns(['tenant', 'sha256']).doNothing())
    .execute();
  return { sha256, bytes: content.length };
}

/** Null for another tenant's as for an unknown one. */
export async function getPayload(db: Kysely<Schema>, tenant: string, sha256: string): Promise<string | null> {
  const record = await db
    .selectFrom('payload')
    .select('value')
    .where('tenant', '=', tenant)
    .where('sha256', '=', sha256)
    .executeTakeFirst();
  return record ? Buffer.from(record.value).toString('utf8') : null;
}
