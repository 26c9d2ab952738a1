// Records the histories and journals that later versions replay: `npx node --experimental-strip-types
// scripts/record-histories.ts`, once a released version's workflow code is final. Needs a Temporal binary, not a server.
// Names of paths record these alone.
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

const recorder = fileURLToPath(new URL('../test/replay/record.ts', import.meta.url));
const flags = ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'];
process.exitCode =
  spawnSync(process.execPath, [...flags, recorder, ...process.argv.slice(2)], { stdio: 'inherit' }).status ??
  1;
