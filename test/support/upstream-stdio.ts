/** An `UpstreamServer` on this process's stdio; argument: its options as JSON, and `stays` to outlive its stdin. */
import { appendFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { UpstreamServer } from './upstream-server.ts';
import type { UpstreamServerOptions, WireMessage } from './upstream-server.ts';

const options = JSON.parse(process.argv[2] ?? '{}') as UpstreamServerOptions & { stays?: boolean };
appendFileSync(join(options.dir, 'pid'), `${process.pid}\n`);
const server = new UpstreamServer(options);
console.error(`started, and the secret is ${process.env.UPSTREAM_SECRET ?? 'none'}`);
console.log('a line that is no JSON-RPC');
const lines = createInterface({ input: process.stdin });
lines.on('line', (line) => {
  server.receive(JSON.parse(line) as WireMessage, {
    write: (text) => void process.stdout.write(`${text}\n`),
    die: () => process.exit(7),
  });
});
if (options.stays) {
  setInterval(() => undefined, 60_000);
  process.on('SIGTERM', () => undefined);
} else lines.on('close', () => process.exit(0));
