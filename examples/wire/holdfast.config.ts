import { defineConfig } from '../../src/index.ts';
import { wire } from './handlers.ts';

export default defineConfig({ actions: [wire] });
