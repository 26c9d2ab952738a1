/** Procedures that ask for a decision: workflow code, bundled into the worker. */
import { StepFailed, procedure } from 'holdfast/procedure';
import type { Action } from '../../../src/index.ts';

/** Does what the model says; goes on without where its budget is spent. */
export const advised = procedure<readonly Action[], { topic: string }>('advised', async (p, { topic }) => {
  try {
    return await p.decide('advice', 'ask_model', { topic });
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error;
    return { step: error.step, cause: error.cause, code: error.code };
  }
});

/** The same question as a plain step. */
export const told = procedure<readonly Action[], { topic: string }>('told', (p, { topic }) =>
  p.step('advice', 'ask_model', { topic }),
);
