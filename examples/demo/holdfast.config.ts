// What `holdfast demo` offers: the same actions, and a procedure whose code is bundled when its worker starts.
import { defineConfig } from '../../src/index.ts';
import { bookCargo } from '../cargo/actions.ts';
import { actions as cargoActions } from '../cargo/handlers.ts';
import withoutProcedures from './actions.config.ts';

export default defineConfig({
  ...withoutProcedures,
  actions: [...withoutProcedures.actions, ...cargoActions],
  procedures: { code: '../cargo/procedures.ts', contracts: [bookCargo] },
});
