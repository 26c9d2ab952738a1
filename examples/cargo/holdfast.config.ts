import { defineConfig } from '../../src/index.ts';
import { bookCargo } from './actions.ts';
import { actions } from './handlers.ts';

export default defineConfig({
  actions: [...actions],
  procedures: { code: './procedures.ts', contracts: [bookCargo] },
});
