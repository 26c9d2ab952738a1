import { defineConfig } from '../../src/index.ts';
import { write } from './handlers.ts';

export default defineConfig({ actions: [write] });
