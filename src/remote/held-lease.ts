/**
 * The claim on a control call while it is held: renewed every third of its lease (S8.4).
 *
 * Invariants:
 * 1. `lost` aborts once: when a renewal is refused, or when so long has passed since the start of the newest confirmed one
 *    that the lease may have run out. What the call answers after that is nobody's.
 * 2. Each renewal has a deadline of its own, a third of the lease: one that hangs keeps the next from nothing.
 * 3. The lease is no deadline of the call: while renewals are confirmed the call may take as long as it takes.
 */
import type { Clock } from '../contract/clock.ts';
import type { RemoteClaim, RemoteTasks } from '../ledger/remote-tasks.ts';

/** The claim on a control call was overtaken, or can not be shown to be ours any more. */
export class LeaseLost extends Error {
  override readonly name = 'LeaseLost';
  constructor() {
    super('the claim on this control call is no longer held');
  }
}

export interface LeaseTerms {
  ledger: Pick<RemoteTasks, 'renewRemoteCall'>;
  clock: Clock;
  claim: RemoteClaim;
  leaseMs: number;
}

export class HeldLease {
  readonly #terms: LeaseTerms;
  readonly #losing = new AbortController();
  readonly #thirdMs: number;
  #confirmedAt = 0;
  #callOff: () => void = () => undefined;
  #isLetGo = false;

  constructor(terms: LeaseTerms) {
    this.#terms = terms;
    this.#thirdMs = Math.max(1, Math.floor(terms.leaseMs / 3));
  }

  get lost(): AbortSignal {
    return this.#losing.signal;
  }

  get isLost(): boolean {
    return this.#losing.signal.aborted;
  }

  /** Before the call: verifies the claim and extends it, however long ago it was granted. Renewed from then on. */
  async confirm(): Promise<boolean> {
    const isOurs = await this.#renew();
    if (isOurs !== true) this.#lose();
    else this.#callOff = this.#terms.clock.after(this.#thirdMs, () => this.#tick());
    return isOurs === true;
  }

  /** No renewal begins after this. */
  letGo(): void {
    this.#isLetGo = true;
    this.#callOff();
  }

  #tick(): void {
    if (this.#isLetGo || this.isLost) return;
    const { clock, leaseMs } = this.#terms;
    if (clock.now() - this.#confirmedAt >= leaseMs) {
      this.#lose();
      return;
    }
    this.#callOff = clock.after(this.#thirdMs, () => this.#tick());
    void this.#renew().then((isOurs) => {
      if (isOurs === false && !this.#isLetGo) this.#lose();
    });
  }

  /** Null: the ledger could not be asked within the deadline. */
  async #renew(): Promise<boolean | null> {
    const { ledger, clock, claim, leaseMs } = this.#terms;
    const askedAt = clock.now();
    let callOff: () => void = () => undefined;
    const deadline = new Promise<null>((resolve) => {
      callOff = clock.after(this.#thirdMs, () => resolve(null));
    });
    const asked = ledger.renewRemoteCall(claim, leaseMs).catch(() => null);
    const isOurs = await Promise.race([asked, deadline]);
    callOff();
    if (isOurs === true) this.#confirmedAt = Math.max(this.#confirmedAt, askedAt);
    return isOurs;
  }

  #lose(): void {
    this.#callOff();
    this.#losing.abort(new LeaseLost());
  }
}
