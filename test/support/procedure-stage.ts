/** A whole Holdfast with the procedures of the tests. */
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { defineProcedure } from '../../src/index.ts';
import type { TaskAnswer } from '../../src/client/index.ts';
import type { TaskState } from '../../src/task/state.ts';
import { createTestHoldfast } from '../../src/testing/index.ts';
import type { TestHoldfast, TestHoldfastOptions } from '../../src/testing/index.ts';
import { bookActions } from './book-actions.ts';

export const ANN = { tenant: 'local', subject: 'ann', roles: [] };
export const BOSS = { tenant: 'local', subject: 'bea', roles: ['boss'] };

const NAMES = [
  'trip',
  'parallel_trip',
  'two_words',
  'optional_hotel',
  'hotel_then_car',
  'tour',
  'survey',
  'asked_survey',
  'race',
  'long_patrol',
  'with_child',
  'parts',
  'long_part',
];
const POLL_MS = 20;
const POLL_LIMIT_MS = 30_000;

export const SAGA_CODE = fileURLToPath(new URL('./procedures/saga.ts', import.meta.url));
export const sagaContracts = NAMES.map((name) =>
  defineProcedure({ name, description: 'A procedure of the tests.', input: z.looseObject({}) }),
);

let calls = 0;

export class ProcedureStage {
  readonly holdfast: TestHoldfast;

  private constructor(holdfast: TestHoldfast) {
    this.holdfast = holdfast;
  }

  static async open(options: Partial<TestHoldfastOptions> = {}): Promise<ProcedureStage> {
    const procedures = { code: SAGA_CODE, contracts: sagaContracts };
    return new ProcedureStage(
      await createTestHoldfast({ actions: [...bookActions], procedures, ...options }),
    );
  }

  async start(action: string, args = {}): Promise<string> {
    calls += 1;
    const call = { action, args, key: `call-${calls}`, principal: ANN };
    return (await this.holdfast.client.start(call)).taskId;
  }

  async ended(taskId: string): Promise<TaskAnswer> {
    await this.holdfast.temporal.workflow.getHandle(taskId).result();
    return this.holdfast.client.get(taskId, ANN);
  }

  async status(taskId: string): Promise<string> {
    return (await this.holdfast.client.get(taskId, ANN)).status;
  }

  /** Of its journal, oldest first: `type step`. */
  async events(taskId: string): Promise<string[]> {
    const handle = this.holdfast.temporal.workflow.getHandle(taskId);
    const events = await handle.query<{ type: string; data: { step?: string } }[]>('events');
    return events.map(({ type, data: { step } }) => (step === undefined ? type : `${type} ${step}`));
  }

  async hasStep(taskId: string, name: string, status: string): Promise<boolean> {
    const state = await this.holdfast.temporal.workflow.getHandle(taskId).query<TaskState>('task');
    return state.steps?.some((step) => step.step === name && step.status === status) ?? false;
  }
}

/** Polls while the clock of a time-skipping server stands still. */
export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const limit = Date.now() + POLL_LIMIT_MS; !(await isSo()); await delay(POLL_MS))
    if (Date.now() > limit) throw new Error(`it never came to be so: ${isSo.toString()}`);
}
