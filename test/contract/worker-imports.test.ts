// What a process loads it holds for good: what `holdfast worker` does not need is imported where it is needed.
import { readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');
const STATIC_IMPORT = /^(?:import|export)(?! type\b)[^;'"]*from '(\.[^']+)'/gm;

test('a process that only takes work loads neither gateway nor MCP client', () => {
  const loaded = reached([join(root, 'src/cli/program.ts')]);
  expect(loaded).toContain('worker/create-worker.ts');
  expect(loaded.filter((file) => /^src\/(gateway|mcp-client|console|testing)\//.test(file))).toEqual([]);
});

function reached(entries: string[]): string[] {
  const found = new Set<string>();
  const left = [...entries];
  for (let file = left.pop(); file !== undefined; file = left.pop()) {
    if (found.has(file)) continue;
    found.add(file);
    for (const [, path = ''] of readFileSync(file, 'utf8').matchAll(STATIC_IMPORT))
      left.push(join(dirname(file), path));
  }
  return [...found].map((file) => relative(root, file));
}
