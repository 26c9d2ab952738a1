/** A server of long tasks, as the target of tests: it counts what it is asked, and tasks end when the test says so. */
import { defineAction } from '../../src/contract/define-action.ts';
import type { ActionDefinition } from '../../src/contract/define-action.ts';
import { remoteTask } from '../../src/contract/handlers.ts';
import { implementAction } from '../../src/contract/implement-action.ts';
import type { Action } from '../../src/contract/implement-action.ts';
import { AnswerRefused } from '../../src/contract/remote-server.ts';
import type { RemoteServer, RemoteStatus, RemoteTaskHandle } from '../../src/contract/remote-server.ts';
import type { JsonObject } from '../../src/task/json.ts';
import { z } from 'zod';

export class RemoteDepot implements RemoteServer {
  readonly states = new Map<string, RemoteStatus>();
  readonly asked = { submit: 0, status: 0, cancel: 0, answer: 0 };
  readonly answers: JsonObject[] = [];
  /** What a cancel makes of a task; null: the server takes none. */
  onCancel: RemoteStatus | null = { kind: 'cancelled' };
  /** So many of the next answers. */
  refuses = 0;

  submit(operationId: string): RemoteTaskHandle {
    this.asked.submit += 1;
    const taskId = `depot-${operationId}-${this.asked.submit}`;
    this.states.set(taskId, { kind: 'working' });
    return { server: 'depot', tool: 'archive', taskId, pollIntervalMs: 1_000, ttlMs: null };
  }

  /** Of the newest task. */
  set(status: RemoteStatus): void {
    this.states.set([...this.states.keys()].at(-1) ?? '', status);
  }

  status({ taskId }: RemoteTaskHandle): Promise<RemoteStatus> {
    this.asked.status += 1;
    return Promise.resolve(this.states.get(taskId) ?? { kind: 'not_found' });
  }

  cancel({ taskId }: RemoteTaskHandle): Promise<void> {
    this.asked.cancel += 1;
    if (this.onCancel === null) return Promise.reject(new Error('method not found'));
    this.states.set(taskId, this.onCancel);
    return Promise.resolve();
  }

  answer({ taskId }: RemoteTaskHandle, responses: JsonObject): Promise<void> {
    if (this.refuses > 0) {
      this.refuses -= 1;
      return Promise.reject(new AnswerRefused('no such shelf'));
    }
    this.asked.answer += 1;
    this.answers.push(responses);
    this.states.set(taskId, { kind: 'working', message: 'answered' });
    return Promise.resolve();
  }

  action(more: Partial<ActionDefinition<z.ZodObject, z.ZodType>> = {}): Action {
    const contract = defineAction({
      name: 'archive',
      version: 1,
      description: 'Archives a folder at the depot, which takes hours.',
      effect: 'unsafe',
      input: z.object({ folder: z.string() }),
      output: z.object({ files: z.number() }),
      ...(more.effect !== 'safe' && { rollback: { kind: 'outOfBand' } }),
      verify: { none: 'the test looks itself' },
      ...more,
    });
    return implementAction(contract, {
      execute: (_input, { operationId }) => Promise.resolve(remoteTask(this.submit(operationId))),
      remoteResult: (_input, given) => Promise.resolve(given['structuredContent'] as never),
    });
  }
}
