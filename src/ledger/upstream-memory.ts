/**
 * What Holdfast remembers of other people's servers: the tools each listed last, for processes that can't or need not ask
 * it, and what was read before an effect, for its rollback.
 */
import type { Kysely } from 'kysely';
import { isJsonObject } from '../task/json.ts';
import type { Json, JsonObject } from '../task/json.ts';
import type { Schema } from './schema.ts';
import type { Tx } from './store.ts';

/** As the server listed them; only their names are of meaning here. */
type ListedTool = { name: string };

export interface KeptUpstreamList<Tool extends ListedTool = ListedTool> {
  tools: Tool[];
  /** Listed once and not any more, or not like that, newest first, at most as many as one server may list: running tasks may need them. */
  gone: Tool[];
  /** When the server was last seen to list them, by the database's clock. */
  seenAt: number;
}

export interface UpstreamMemory {
  /** Null where no process has seen a list of it. */
  upstreamList<Tool extends ListedTool>(identity: string): Promise<KeptUpstreamList<Tool> | null>;
  /** What the server lists now; what it no longer lists goes to `gone`, and so does what a changed tool was last. */
  keepUpstreamList<Tool extends ListedTool>(
    identity: string,
    tools: readonly Tool[],
  ): Promise<KeptUpstreamList<Tool>>;
  /** The first one stands. */
  keepBefore(operationId: string, tenant: string, before: JsonObject): Promise<JsonObject>;
  recallBefore(operationId: string): Promise<JsonObject | null>;
  forgetBefore(operationId: string): Promise<void>;
}

const GONE_MAX = 1_000;

export async function upstreamList(db: Kysely<Schema>, identity: string): Promise<KeptUpstreamList | null> {
  const record = await db
    .selectFrom('upstream')
    .select(['tools', 'gone', 'seen_at'])
    .where('identity', '=', identity)
    .executeTakeFirst();
  if (record === undefined) return null;
  return { tools: listIn(record.tools), gone: listIn(record.gone), seenAt: Number(record.seen_at) };
}

export async function keepUpstreamList(
  tx: Tx,
  identity: string,
  tools: readonly ListedTool[],
): Promise<KeptUpstreamList> {
  const before = await upstreamList(tx.kysely, identity);
  const listed = new Set(tools.map((tool) => JSON.stringify(tool)));
  const gone = [...(before?.tools ?? []), ...(before?.gone ?? [])]
    .filter((tool) => !listed.has(JSON.stringify(tool)))
    .filter(({ name }, index, all) => all.findIndex((one) => one.name === name) === index)
    .slice(0, GONE_MAX);
  const seenAt = await tx.now();
  const written = { tools: JSON.stringify(tools), gone: JSON.stringify(gone), seen_at: seenAt };
  await tx.kysely
    .insertInto('upstream')
    .values({ identity, ...written })
    .onConflict((conflict) => conflict.column('identity').doUpdateSet(written))
    .execute();
  return { tools: listIn(written.tools), gone, seenAt };
}

const listIn = (text: string): ListedTool[] => JSON.parse(text) as ListedTool[];

export async function keepBefore(
  tx: Tx,
  operationId: string,
  tenant: string,
  before: JsonObject,
): Promise<JsonObject> {
  await tx.kysely
    .insertInto('upstream_before')
    .values({ operation_id: operationId, tenant, value: JSON.stringify(before), kept_at: await tx.now() })
    .onConflict((conflict) => conflict.column('operation_id').doNothing())
    .execute();
  const kept = await recallBefore(tx.kysely, operationId);
  if (kept === null) throw new Error(`what was read before ${operationId} is gone`);
  return kept;
}

export async function recallBefore(db: Kysely<Schema>, operationId: string): Promise<JsonObject | null> {
  const record = await db
    .selectFrom('upstream_before')
    .select('value')
    .where('operation_id', '=', operationId)
    .executeTakeFirst();
  const value = record === undefined ? null : (JSON.parse(record.value) as Json);
  return isJsonObject(value ?? undefined) ? (value as JsonObject) : null;
}

export async function forgetBefore(tx: Tx, operationId: string): Promise<void> {
  await tx.kysely.deleteFrom('upstream_before').where('operation_id', '=', operationId).execute();
}
