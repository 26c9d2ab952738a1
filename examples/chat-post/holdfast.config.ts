import { defineConfig } from '../../src/index.ts';
import { post } from './handlers.ts';

export default defineConfig({ actions: [post] });
