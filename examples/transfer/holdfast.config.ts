import { defineConfig } from '../../src/index.ts';
import { transfer } from './handlers.ts';
import { migrateTransfer } from './tables.ts';

export default defineConfig({ actions: [transfer], setup: migrateTransfer });
