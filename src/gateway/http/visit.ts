/**
 * One HTTP request before the limits of its principal (M7.2): counted when it arrives, before its body is read, and among
 * the open calls from its body on until the response ends, however it ends; in a session until its calls have, which go on
 * without their client (M5.1).
 *
 * Open are the requests that a message holds. A notification, or the answer to a question of ours, needs no place: it may
 * be what frees one. A listen has a bound of its own.
 */
import type { ServerResponse } from 'node:http';
import { HoldfastError } from '../../contract/error.ts';
import type { Json } from '../../task/json.ts';
import type { Principal } from '../../task/plan.ts';
import type { Admission } from '../admission.ts';
import { tooManyCalls } from '../error-mapping.ts';
import type { HttpRefusal } from '../error-mapping.ts';
import type { Leave } from '../places.ts';

export class Visit {
  readonly #admission: Admission;
  #isClosed = false;
  #outlivesResponse = false;
  #leave: Leave = () => undefined;

  /** To be made before anything is awaited: the client may go at any moment. */
  constructor(admission: Admission, response: ServerResponse) {
    this.#admission = admission;
    response.once('close', () => {
      this.#isClosed = true;
      this.#closed();
    });
  }

  /** Of one that began `until` this. */
  end(): void {
    this.#leave();
  }

  /** Null when it may go on. */
  arrive(principal: Principal): Promise<HttpRefusal | null> {
    return refusalOf(() => this.#admission.count(principal, 1));
  }

  /** The same, once it is known what came. A batch (2025-03-26) is as many calls as it holds. */
  begin(principal: Principal, body: Json, until: 'response' | 'end'): Promise<HttpRefusal | null> {
    const messages = Array.isArray(body) ? body : [body];
    return refusalOf(async () => {
      if (messages.length > 1) await this.#admission.count(principal, messages.length - 1);
      this.#leave = this.#admission.open(principal, messages.filter(needsPlace).length);
      this.#outlivesResponse = until === 'end';
      if (this.#isClosed) this.#closed();
    });
  }

  #closed(): void {
    if (!this.#outlivesResponse) this.#leave();
  }
}

const needsPlace = (message: Json): boolean =>
  typeof message === 'object' &&
  message !== null &&
  !Array.isArray(message) &&
  message.id !== undefined &&
  typeof message.method === 'string' &&
  message.method !== 'subscriptions/listen';

async function refusalOf(admitted: () => Promise<void>): Promise<HttpRefusal | null> {
  try {
    await admitted();
    return null;
  } catch (error) {
    if (error instanceof HoldfastError && error.code === 'too_many_calls') return tooManyCalls(error);
    throw error;
  }
}
