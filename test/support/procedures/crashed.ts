/** The procedures whose workers are killed (procedure-crash.test.ts): workflow code, bundled into the worker. */
import { procedure } from 'holdfast/procedure';
import type { Action } from '../../../src/index.ts';

type Actions = readonly Action[];

/** Acts on what a model said, which says something else whenever it is asked. */
export const decided = procedure<Actions>('decided', async (p) => {
  const { answer } = (await p.decide('advice', 'target_model', {})) as { answer: string };
  await p.step('act', 'target_conditional', { value: answer });
  return { answer };
});

export const refunded = procedure<Actions>('refunded', async (p) => {
  await p.step('refund', 'target_conditional', { value: 'refund' });
  await p.step('notify', 'target_conditional', { value: 'notify' });
});

/** Three that stand and a fourth that is refused for good. */
export const undone = procedure<Actions>('undone', async (p) => {
  for (const stepId of ['one', 'two', 'three']) await p.step(stepId, 'target_conditional', { value: stepId });
  await p.step('four', 'target_abortable', { value: 'four' });
});
