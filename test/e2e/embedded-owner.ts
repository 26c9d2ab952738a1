// A process that starts the embedded server on the folder it is given, tells its parent, and then does nothing.
import { EmbeddedError, startEmbeddedTemporal } from '../../src/embedded/index.ts';

try {
  const server = await startEmbeddedTemporal({ stateDir: process.argv[2] ?? '' });
  process.send?.({ address: server.address, pid: server.pid });
  process.on('message', () => undefined); // stay alive
} catch (error) {
  process.send?.({ code: error instanceof EmbeddedError ? error.code : String(error) });
  process.disconnect();
}
