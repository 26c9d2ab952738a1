/** The servers of examples/upstream as it configures them: npm's below UPSTREAM_FOLDER, the others at PRESS_URL and KILN_URL. */
import everything from '../../examples/upstream/everything/holdfast.config.ts';
import fastmcp from '../../examples/upstream/fastmcp/holdfast.config.ts';
import filesystem from '../../examples/upstream/filesystem/holdfast.config.ts';
import memory from '../../examples/upstream/memory/holdfast.config.ts';
import tasksExtension from '../../examples/upstream/tasks-extension/holdfast.config.ts';
import { defineConfig } from '../../src/index.ts';
import { behindWrapper } from './upstream-real-wrapped.ts';

const folder = process.env['UPSTREAM_FOLDER'] ?? '';

export default defineConfig({
  actions: [],
  upstreams: {
    ...behindWrapper(filesystem, folder),
    ...behindWrapper(memory, folder),
    ...behindWrapper(everything, folder),
    ...fastmcp.upstreams,
    ...tasksExtension.upstreams,
  },
});
