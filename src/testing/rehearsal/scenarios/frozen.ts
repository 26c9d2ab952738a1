/**
 * An attempt that stands still from some moment on, while its task takes it for lost and goes on without it (S2.11).
 *
 * The workflow's own first attempt crashes before its claim, having started this one under the same number: the row then
 * holds the claim of an attempt that is alive and that nobody waits for.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { TaskAnswer } from '../../../client/task-client.ts';
import type { OperationOutcome } from '../../../task/outcome.ts';
import { deliverAttempt } from '../late-delivery.ts';
import { crashOnceAt } from '../scripts.ts';
import type { Script } from '../scripts.ts';
import type { Scene } from '../scene.ts';

/** Beyond the third of a claim after which an attempt asks whether it is still its own. */
const ASKS_AGAIN_MARGIN_MS = 200;

class Frozen {
  readonly #scene: Scene;
  readonly #still = deferred();
  readonly #wake = deferred();
  #delivered: Promise<OperationOutcome> | null = null;
  #late: Promise<unknown> | null = null;

  constructor(scene: Scene) {
    this.#scene = scene;
  }

  /** To be returned where it stands still; `goOn` is what it does when it wakes. */
  freeze<T>(goOn: () => Promise<T>): Promise<T> {
    this.#still.resolve();
    const late = this.#wake.promise.then(goOn);
    this.#late = late;
    return late;
  }

  /** For the fault points of the operation. `within_execute`: the script's own `execute` freezes it. */
  inPlaceOfFirst(where: 'after_intent' | 'within_execute'): NonNullable<Script['at']> {
    const faults = ({ point }: { point: string }): Promise<void> =>
      point === where ? this.freeze(() => Promise.resolve()) : Promise.resolve();
    return crashOnceAt('effect', 'before_claim', async () => {
      this.#delivered = deliverAttempt(this.#scene, 1, faults);
      await Promise.race([this.#still.promise, this.#delivered]);
    });
  }

  /** The task ends first; then it wakes, and everything it does is over. */
  async drive(): Promise<TaskAnswer> {
    const { heartbeatMs } = this.#scene.props.action.contract.deadlines;
    await this.#scene.start();
    const answer = await this.#scene.wait();
    await sleep(heartbeatMs / 3 + ASKS_AGAIN_MARGIN_MS);
    this.#wake.resolve();
    await this.#late?.catch(() => undefined);
    const outcome = await this.#delivered;
    this.#scene.expect(outcome?.kind === 'fenceStale', `the attempt that woke was answered ${outcome?.kind}`);
    return answer;
  }
}

const all = new WeakMap<Scene, Frozen>();

/** The frozen attempt of a scene: one, for its script and its drive alike. */
export function frozenIn(scene: Scene): Frozen {
  const frozen = all.get(scene) ?? new Frozen(scene);
  all.set(scene, frozen);
  return frozen;
}

function deferred(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}
