/** The MCP servers that others wrote and npm installed: their entry files, and their versions. */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

const require = createRequire(import.meta.url);

const ENTRIES = {
  '@modelcontextprotocol/server-filesystem': () =>
    require.resolve('@modelcontextprotocol/server-filesystem/dist/index.js'),
  '@modelcontextprotocol/server-memory': () =>
    require.resolve('@modelcontextprotocol/server-memory/dist/index.js'),
  '@modelcontextprotocol/server-everything': () =>
    require.resolve('@modelcontextprotocol/server-everything/dist/index.js'),
};

export type ServerPackage = keyof typeof ENTRIES;

export const entryOf = (packageName: ServerPackage): string => ENTRIES[packageName]();

export function versionOf(packageName: ServerPackage): string {
  const file = join(dirname(entryOf(packageName)), '..', 'package.json');
  return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
}
