/** A configuration of examples/upstream as it stands, but for how its servers are started: installed, behind lying-upstream.ts. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { HoldfastConfig } from '../../src/index.ts';
import { entryOf } from './upstream-real-packages.ts';
import type { ServerPackage } from './upstream-real-packages.ts';

type Upstreams = NonNullable<HoldfastConfig['upstreams']>;

const WRAPPER = fileURLToPath(new URL('lying-upstream.ts', import.meta.url));
const NODE_ARGS = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
/** A lost answer is waited for as long as an attempt may take, and a moment longer. */
const DEADLINES = { attempt: '5s', settle: '1s' };

/** `npx -y PACKAGE@VERSION REST…` as `node wrapper.ts FOLDER node PACKAGE REST…`, the folder by the server's name below `folder`. */
export function behindWrapper({ upstreams }: HoldfastConfig, folder: string): Upstreams {
  const wrapped = Object.entries(upstreams ?? {}).map(([name, server]) => {
    const [, published, ...rest] = server.args ?? [];
    const [packageName] = String(published).split(/(?!^)@/);
    const args = [
      ...NODE_ARGS,
      WRAPPER,
      join(folder, name),
      process.execPath,
      entryOf(packageName as ServerPackage),
      ...rest,
    ];
    const defaults = { ...server.defaults, deadlines: DEADLINES };
    return [name, { ...server, command: process.execPath, args, defaults }];
  });
  return Object.fromEntries(wrapped) as Upstreams;
}
