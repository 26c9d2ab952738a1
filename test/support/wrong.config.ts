import { defineConfig } from '../../src/index.ts';
import { wrongActions } from './wrong-actions.ts';

export default defineConfig({ actions: wrongActions });
