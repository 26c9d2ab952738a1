/** `npm run evidence [-- FOLDER]`: plays the evidence and writes it, into docs/evidence unless told otherwise. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { evidence } from '../test/evidence/evidence.ts';

const folder = resolve(process.argv[2] ?? fileURLToPath(new URL('../docs/evidence', import.meta.url)));
const startedAt = Date.now();
mkdirSync(folder, { recursive: true });
for (const [name, page] of Object.entries(await evidence())) {
  writeFileSync(join(folder, name), page);
  console.log(`wrote ${join(folder, name)}`);
}
console.log(`in ${((Date.now() - startedAt) / 1_000).toFixed(1)} s`);
