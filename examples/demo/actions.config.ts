// What the workers of `holdfast demo` run that are killed half-way: the actions of the other examples, together.
import { defineConfig } from '../../src/index.ts';
import { post } from '../chat-post/handlers.ts';
import { warehouseReservation } from '../inventory/warehouse-handlers.ts';
import { charge } from '../provider/handlers.ts';
import { transfer } from '../transfer/handlers.ts';
import { migrateTransfer } from '../transfer/tables.ts';
import { filesystemServer } from './filesystem.ts';

export default defineConfig({
  actions: [warehouseReservation, transfer, charge, post],
  setup: migrateTransfer,
  ...filesystemServer(),
});
