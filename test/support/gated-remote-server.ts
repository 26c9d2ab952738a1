/** A server of remote tasks whose every answer waits for the test, and which counts what it was asked. */
import assert from 'node:assert/strict';
import type { RemoteServer, RemoteStatus, RemoteTaskHandle } from '../../src/contract/remote-server.ts';
import type { JsonObject } from '../../src/task/json.ts';

export interface GatedCall {
  kind: 'status' | 'cancel' | 'answer';
  task: RemoteTaskHandle;
  responses?: JsonObject;
  signal: AbortSignal;
  answer: (value?: RemoteStatus) => void;
  fail: (error: unknown) => void;
}

export class GatedRemoteServer implements RemoteServer {
  /** In the order they came; answered ones stay. */
  readonly calls: GatedCall[] = [];
  /** A server that reacts to an abort at once; else its calls settle only when the test says so. */
  isCooperative = true;

  status(task: RemoteTaskHandle, signal: AbortSignal): Promise<RemoteStatus> {
    return this.#gate('status', task, signal) as Promise<RemoteStatus>;
  }

  async cancel(task: RemoteTaskHandle, signal: AbortSignal): Promise<void> {
    await this.#gate('cancel', task, signal);
  }

  async answer(task: RemoteTaskHandle, responses: JsonObject, signal: AbortSignal): Promise<void> {
    await this.#gate('answer', task, signal, responses);
  }

  /** How often it was asked. */
  asked(kind: GatedCall['kind'], taskId?: string): number {
    return this.calls.filter(
      (call) => call.kind === kind && (taskId === undefined || call.task.taskId === taskId),
    ).length;
  }

  call(index: number): GatedCall {
    const found = this.calls.at(index);
    assert(found, `there is no call ${index}`);
    return found;
  }

  #gate(
    kind: GatedCall['kind'],
    task: RemoteTaskHandle,
    signal: AbortSignal,
    responses?: JsonObject,
  ): Promise<RemoteStatus | undefined> {
    return new Promise((resolve, reject) => {
      this.calls.push({
        ...{ kind, task, signal, answer: resolve, fail: reject },
        ...(responses && { responses }),
      });
      if (this.isCooperative)
        signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
    });
  }
}
