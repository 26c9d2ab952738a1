import { once } from 'node:events';
import { createServer } from 'node:http2';
import type { ServerHttp2Session } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { Connection } from '@temporalio/client';
import { expect, it } from 'vitest';
import { quietAtItsEnd } from '../../src/client/quiet-connection.ts';

it('a call that the server cuts after the connection was closed is refused, and the process lives on', async () => {
  const sessions: ServerHttp2Session[] = [];
  let heard = (): void => undefined;
  const isHeard = new Promise<void>((resolve) => (heard = resolve));
  // It reads a call and answers none.
  const server = createServer()
    .on('session', (session) => sessions.push(session))
    .on('stream', () => heard());
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const { port } = server.address() as AddressInfo;
  const connection = quietAtItsEnd(Connection.lazy({ address: `127.0.0.1:${port}` }));
  const call = connection.workflowService.getSystemInfo({});
  const ended = expect(call).rejects.toMatchObject({ code: 9 });
  await isHeard;
  await connection.close();
  for (const session of sessions) session.destroy();
  await ended;
  await expect(connection.workflowService.getSystemInfo({})).rejects.toMatchObject({ code: 9 });
  server.close();
});
