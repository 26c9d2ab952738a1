/** A gateway on this process's stdio before two servers on theirs; argument: their options, by name. */
import { openUpstream } from '../../src/upstream/connection/open-upstream.ts';
import { drivenGateway } from './driven-gateway.ts';
import type { UpstreamServerOptions } from './upstream-server.ts';
import { stdioServer } from './upstream-stage.ts';
import { directTools } from './upstream-tools.ts';

const servers = JSON.parse(process.argv[2] ?? '{}') as Record<string, UpstreamServerOptions>;
const log = () => undefined;
const upstreams = Object.entries(servers).map(([identity, options]) => ({
  identity,
  upstream: openUpstream({
    ...{ identity, address: stdioServer(options), info: { name: 'gateway', version: '1.0.0' } },
    log: { info: log, warn: log },
  }),
}));
const { gateway } = drivenGateway({
  tools: upstreams.flatMap(({ identity, upstream }) => directTools(identity, upstream)),
});
await gateway.serveMcpStdio().closed;
await gateway.close();
await Promise.all(upstreams.map(({ upstream }) => upstream.close()));
