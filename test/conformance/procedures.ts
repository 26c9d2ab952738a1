// Asks two things at once, and ends when both are decided. Workflow code.
import { procedure } from 'holdfast/procedure';

const ASKED_HERE = { requesterMayDecide: true, mayAnswerOverMcp: true } as const;

export const multiInput = procedure<readonly never[]>('multi_input', async (p) => {
  await Promise.all([
    p.approve('budget', { ...ASKED_HERE, view: { question: 'Is the budget right?' } }),
    p.approve('date', { ...ASKED_HERE, view: { question: 'Is the date right?' } }),
  ]);
  return 'both were approved';
});
