import { defineConfig } from '../../src/index.ts';
import { release, reservation } from './handlers.ts';
import { migrateInventory } from './tables.ts';
import { warehouseRelease, warehouseReservation } from './warehouse-handlers.ts';

export default defineConfig({
  actions: [reservation, release, warehouseReservation, warehouseRelease],
  setup: migrateInventory,
});
