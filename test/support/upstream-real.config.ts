/** The servers of npm as examples/upstream configures them, below UPSTREAM_FOLDER. */
import everything from '../../examples/upstream/everything/holdfast.config.ts';
import filesystem from '../../examples/upstream/filesystem/holdfast.config.ts';
import memory from '../../examples/upstream/memory/holdfast.config.ts';
import { defineConfig } from '../../src/index.ts';
import { behindWrapper } from './upstream-real-wrapped.ts';

const folder = process.env['UPSTREAM_FOLDER'] ?? '';

export default defineConfig({
  actions: [],
  upstreams: {
    ...behindWrapper(filesystem, folder),
    ...behindWrapper(memory, folder),
    ...behindWrapper(everything, folder),
  },
});
