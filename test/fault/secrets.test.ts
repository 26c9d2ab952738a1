/**
 * No secret in any store (S2.10): canaries go in as a sensitive argument and come out as a sensitive result, through
 * success, refusal, crash, mismatch and conflict; then every byte that was kept or logged is searched for them.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connect } from '../support/mcp-clients.ts';
import { FaultSystem, PRINCIPAL, outcomeOf, unique } from '../support/fault-system.ts';
import type { Store, StoreKind } from '../support/fault-system.ts';

const STORES: readonly StoreKind[] = ['sqlite', 'postgres'];

let system: FaultSystem;
beforeAll(async () => {
  system = await FaultSystem.open({ encryptionKeys: randomBytes(32).toString('base64') });
});
afterAll(() => system.close());

/** What must be found nowhere: the canary as it is, and as it looks inside base64 at each of its three alignments. */
function tracesOf(canary: string): string[] {
  const inBase64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), Buffer.from(canary)])
      .toString('base64')
      .slice(offset === 0 ? 0 : 4, -4),
  );
  return [canary, encodeURIComponent(canary), ...inBase64];
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Every row of every table, as text. */
async function dump({ database }: Store): Promise<string> {
  if (database === null) return '';
  const tables = await database.query(
    "select table_name from information_schema.tables where table_schema = 'public'",
  );
  const rows = await Promise.all(
    tables.map(({ table_name: name }) => database.query(`select t::text from "${String(name)}" t`)),
  );
  expect(tables.length).toBeGreaterThan(5);
  return JSON.stringify(rows);
}

describe.each(STORES)('secrets, on %s', (kind) => {
  test(
    '[S2.10] crash, retry, permanent refusal, mismatch and conflict leave no canary in any store, log or error',
    { timeout: 180_000 },
    async () => {
      const store = await system.store(kind);
      const taskQueue = unique('secrets');
      const canary = `canary-${randomBytes(12).toString('hex')}`;
      const otherCanary = `canary-${randomBytes(12).toString('hex')}`;
      const client = await system.client(store, taskQueue);
      const said: unknown[] = [];
      const hear = async (answer: Promise<unknown>) =>
        void said.push(await answer.catch((error: unknown) => error));
      const marker = `marker-${randomBytes(12).toString('hex')}`; // no secret: shows that the search finds what is there
      const call = (complain: string, password = canary, key = unique('key')) => ({
        action: 'target_secret',
        args: { value: marker, password, complain },
        key,
        principal: PRINCIPAL,
      });

      // A crash after the effect, and the whole way again in another process.
      const crashing = await system.worker(store, { taskQueue, stop: { point: 'after_effect' } }).ready();
      const first = call('no');
      const { taskId } = await client.start(first);
      await crashing.reached(1);
      await crashing.kill();
      const worker = await system.worker(store, { taskQueue }).ready();
      const done = await outcomeOf(client, taskId);
      expect(done).toMatchObject({ status: 'completed', result: { token: `${canary}-token` } }); // its owner gets it
      expect(await system.target.count(done.operationId)).toBe(1);

      await hear(client.start(call('no', otherCanary, first.key))); // conflict
      await hear(client.start({ ...call('no'), args: { value: 'v', password: canary, complain: canary } })); // invalid
      for (const complain of ['refuse', 'throw', 'mismatch']) {
        const task = await client.start(call(complain));
        await hear(outcomeOf(client, task.taskId));
        await hear(client.detail(task.taskId, PRINCIPAL).then(({ events: _events, ...detail }) => detail));
        await hear(client.audit(task.taskId, PRINCIPAL));
      }
      const gateway = await system.caller(store, { taskQueue, gateway: { blockingMs: 10_000 } }).ready();
      const mcp = await connect('v2 modern', { transport: 'http', url: gateway.data['url'] ?? '' });
      for (const complain of ['refuse', 'mismatch', canary]) {
        await hear(mcp.callTool('target_secret', { value: 'v', password: canary, complain }));
      }
      await hear(store.ledger.alerts({ tenant: PRINCIPAL.tenant }));
      await hear(client.list(PRINCIPAL));
      expect(said).toHaveLength(16);
      await Promise.all([worker.kill(), gateway.kill()]);

      const places: Record<string, string> = {
        'what callers and operators were told': JSON.stringify(said.map(plain)),
        'the worker’s log': crashing.output + worker.output,
        'the gateway’s log': gateway.output,
        'the ledger on PostgreSQL': await dump(store),
      };
      for (const file of filesBelow(system.folder)) places[file] = readFileSync(file, 'latin1');
      expect(
        Object.keys(places).filter((name) => /temporal\.db|ledger\.db/.test(name)).length,
      ).toBeGreaterThan(1);
      expect(places['the worker’s log']).not.toBe('');
      const foundIn = (text: string) => Object.keys(places).filter((name) => places[name]?.includes(text));
      expect(
        foundIn(marker).some((name) => name.includes(kind === 'sqlite' ? 'ledger.db' : 'PostgreSQL')),
      ).toBe(true);
      expect(foundIn(taskId).some((name) => name.includes('temporal.db'))).toBe(true);
      expect(foundIn(marker).filter((name) => name.includes('temporal.db'))).toEqual([]); // encrypted
      for (const trace of [...tracesOf(canary), ...tracesOf(otherCanary)]) {
        expect({ trace, found: foundIn(trace) }).toEqual({ trace, found: [] });
      }
    },
  );
});

function plain(value: unknown): unknown {
  if (!(value instanceof Error)) return value;
  return { ...value, message: value.message, stack: value.stack, cause: plain(value.cause) };
}
