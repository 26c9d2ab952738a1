// A TCP port on loopback that was free a moment ago. Another program may take it before it is used: whoever starts a
// server on it tries again with another.
import { createServer } from 'node:net';

const LOOPBACK = '127.0.0.1';

/** `preferred` if it is free, else any. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred !== undefined && (await listenOnce(preferred)) !== undefined) return preferred;
  const port = await listenOnce(0);
  if (port === undefined) throw new Error('no free port on loopback');
  return port;
}

function listenOnce(port: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen({ port, host: LOOPBACK, exclusive: true }, () => {
      const address = server.address();
      server.close(() => resolve(address && typeof address === 'object' ? address.port : undefined));
    });
  });
}
