// One action of each class on the fault target, for gateways started by the `holdfast` command.
import { defineConfig } from '../../src/index.ts';
import { targetConditional, targetInlineSafe, targetSafe, targetUnsafe } from './target-actions.ts';

export default defineConfig({ actions: [targetConditional, targetUnsafe, targetSafe, targetInlineSafe] });
