import { defineConfig } from '../../src/index.ts';
import { charge } from './handlers.ts';

export default defineConfig({ actions: [charge] });
