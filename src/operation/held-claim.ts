/**
 * A claim while it is held: renewed every third of its length until it is let go (S2.3), lost when the ledger says so.
 *
 * Invariants:
 * 1. `lost` aborts once, when a renewal or an ownership check is refused; what the attempt does after that is late.
 * 2. A ledger that can't be reached loses nothing: the fenced commit decides (S2.7).
 * 3. One renewal at a time; none after `letGo`.
 */
import type { Ledger } from '../ledger/ledger.ts';
import type { Claim } from '../task/claim.ts';
import type { OperationLog } from './deps.ts';

/** Thrown into a handler that goes on after its claim was taken over (S2.5). */
export class ClaimLost extends Error {
  constructor() {
    super('the claim on this operation was taken over; send nothing more');
    this.name = 'ClaimLost';
  }
}

interface Holding {
  ledger: Pick<Ledger, 'renew' | 'owns'>;
  claim: Claim;
  claimMs: number;
  /** False for an inline claim, which lasts as long as its deadlines (interfaces.md "Inline"). */
  renews: boolean;
  heartbeat: () => void;
  log: OperationLog | undefined;
}

export class HeldClaim {
  readonly claim: Claim;
  private readonly holding: Holding;
  private readonly losing = new AbortController();
  private readonly timer: NodeJS.Timeout | null;
  private isRenewing = false;
  private confirmedAt = performance.now();

  constructor(holding: Holding) {
    this.holding = holding;
    this.claim = holding.claim;
    this.timer = holding.renews
      ? setInterval(() => void this.renew(), Math.max(1, Math.floor(holding.claimMs / 3)))
      : null;
  }

  get lost(): AbortSignal {
    return this.losing.signal;
  }

  get isLost(): boolean {
    return this.losing.signal.aborted;
  }

  /**
   * Between two calls of one handler (S2.5): throws when the claim is no longer ours, or that can't be known. One that
   * has run out and that nobody took is extended: from then on it is ours again.
   */
  assertOwner = async (): Promise<void> => {
    const { ledger, claimMs } = this.holding;
    const isOurs =
      !this.isLost && ((await ledger.owns(this.claim)) || (await ledger.renew(this.claim, claimMs)));
    if (!isOurs) {
      this.losing.abort(new ClaimLost());
      throw new ClaimLost();
    }
    this.confirmedAt = performance.now();
  };

  /**
   * Asked immediately before an effect is sent. After a pause of the process (S2.11) the ledger is asked again; that
   * narrows the window between claim and send, it can't close it.
   */
  async isOursStill(): Promise<boolean> {
    if (performance.now() - this.confirmedAt <= this.holding.claimMs / 3) return !this.isLost;
    return this.assertOwner().then(
      () => true,
      (error: unknown) => {
        if (error instanceof ClaimLost) return false;
        throw error;
      },
    );
  }

  letGo(): void {
    if (this.timer !== null) clearInterval(this.timer);
  }

  private async renew(): Promise<void> {
    const { ledger, claimMs, heartbeat, log } = this.holding;
    heartbeat();
    if (this.isRenewing || this.isLost) return;
    this.isRenewing = true;
    const askedAt = performance.now();
    try {
      if (await ledger.renew(this.claim, claimMs)) this.confirmedAt = askedAt;
      else this.losing.abort(new ClaimLost());
    } catch {
      log?.warn(
        { operationId: this.claim.operationId, attempt: this.claim.attempt },
        'a claim could not be renewed',
      );
    } finally {
      this.isRenewing = false;
    }
  }
}
