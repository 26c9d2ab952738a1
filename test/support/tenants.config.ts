// The inventory example for two tenants, for processes started by the `holdfast` command.
import { createHash } from 'node:crypto';
import { defineConfig } from '../../src/index.ts';
import { reservation } from '../../examples/inventory/handlers.ts';
import { migrateInventory } from '../../examples/inventory/tables.ts';

const sha256 = (token: string) => createHash('sha256').update(token).digest('hex');
const token = (tenant: string) => ({ sha256: sha256(tenant), tenant, subject: 'ann', roles: ['buyer'] });

export default defineConfig({
  actions: [reservation],
  setup: migrateInventory,
  auth: { tokens: [token('acme'), token('globex')] },
});
