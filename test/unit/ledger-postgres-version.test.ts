import { afterEach, expect, it } from 'vitest';
import { PostgresStore } from '../../src/ledger/postgres-store.ts';

/** Never connects: the server's answer is given. */
const store = new PostgresStore('postgres://nobody@127.0.0.1:1/none');
const serverIs = (version: number): void => {
  store.query = <Row>() => Promise.resolve([{ version } as Row]);
};
afterEach(() => store.close());

it('[S10.1] a PostgreSQL older than 15 is unsuitable, and says which it is', async () => {
  serverIs(140_012);
  await expect(store.checkPlace()).rejects.toMatchObject({
    code: 'ledger_unsuitable',
    message: expect.stringMatching(/version 14\. Use 15 or newer/) as string,
    details: { version: 140_012, expected: 150_000 },
  });
  for (const version of [150_000, 170_006]) {
    serverIs(version);
    await expect(store.checkPlace()).resolves.toBeUndefined();
  }
});
