/** The MCP servers that others wrote and npm installed: their entry files. */
import { createRequire } from 'node:module';

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
