// The fault target's actions as a configuration, for processes started by the `holdfast` command.
import { defineConfig } from '../../src/index.ts';
import { targetConditional } from './target-actions.ts';

export default defineConfig({ actions: [targetConditional] });
