/** The promise: a file holds exactly this content, or what it held before. No I/O here. */
import { z } from 'zod';
import { defineAction } from '../../src/index.ts';

const sha256 = z.string().regex(/^[0-9a-f]{64}$/);

export const writeFile = defineAction({
  name: 'write_file',
  version: 1,
  description:
    'Writes a text file below the configured folder, replacing what it held. The path is relative and its folder exists. ' +
    'With `ifSha256` it is written only while it holds content of that hash; null means: only while there is no such file.',
  input: z.object({
    path: z.string().min(1).max(1024),
    content: z.string().max(262_144),
    ifSha256: sha256.nullable().optional(),
  }),
  output: z.object({ path: z.string(), sha256, bytes: z.int(), previousSha256: sha256.nullable() }),
  effect: 'conditional',
  rollback: { kind: 'inBand' },
  deadlines: { attempt: '10s', verify: '10s', run: '10m' },
  onCancel: 'rollback',
});
