/** The stages of one rehearsal: one where histories are as long as anywhere, and one where they are short, once it is needed. */
import type { AuditEntry } from '../../ledger/ledger.ts';
import type { PlanApproval } from '../../task/plan.ts';
import { Stage } from './stage.ts';
import type { Cast, StageOptions } from './stage.ts';

const AUDIT_MAX = 100_000;

export class Stages {
  readonly #cast: Cast;
  readonly #approval: PlanApproval | null;
  readonly #options: StageOptions;
  readonly #open = new Map<boolean, Promise<Stage>>();

  constructor(cast: Cast, approval: PlanApproval | null, options: StageOptions) {
    this.#cast = cast;
    this.#approval = approval;
    this.#options = options;
  }

  get(shortHistories: boolean): Promise<Stage> {
    const open =
      this.#open.get(shortHistories) ??
      Stage.open({ ...this.#cast, shortHistories }, this.#approval, this.#options);
    this.#open.set(shortHistories, open);
    return open;
  }

  /** Of every operation that was played. */
  async audit(): Promise<AuditEntry[]> {
    const stages = await Promise.all(this.#open.values());
    const audits = await Promise.all(
      stages.map(({ holdfast: { ledger }, principal: { tenant } }) =>
        ledger.audit({ tenant, limit: AUDIT_MAX }),
      ),
    );
    return audits.flat();
  }

  async close(): Promise<void> {
    const opened = await Promise.allSettled(this.#open.values());
    for (const stage of opened) if (stage.status === 'fulfilled') await stage.value.close();
  }
}
