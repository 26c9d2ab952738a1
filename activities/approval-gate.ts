/**
 * A person's gate in a procedure (`p.approve`): an action that does nothing and whose policy comes with the call, so that
 * it is asked, shown, decided, expired and audited as every other approval is.
 */
import { z } from 'zod';
import type { ApprovalRule } from '../src/contract/define-action.ts';
import { defineAction } from '../src/contract/define-action.ts';
import { implementAction } from '../src/contract/implement-action.ts';
import { APPROVAL_ACTION } from '../src/task/approval.ts';

const contract = defineAction({
  name: APPROVAL_ACTION,
  version: 1,
  description: 'A person is asked before the procedure goes on.',
  input: z.object({
    view: z.record(z.string(), z.json()),
    /** Checked where an approval's rule is: planning a gate with a wrong one is refused. */
    policy: z.record(z.string(), z.json()),
  }),
  output: z.object({}),
  effect: 'safe',
  approval: ({ policy }) => policy as unknown as ApprovalRule,
});

export const approvalGate = implementAction(contract, { execute: () => Promise.resolve({}) });
