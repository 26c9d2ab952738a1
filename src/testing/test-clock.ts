/**
 * The clock of a test ledger: the test server's, which runs ahead of this machine's by whatever was skipped. Between two
 * looks at the server it goes on with real time, and it never steps back.
 */
export class TestClock {
  readonly #serverNowMs: () => Promise<number>;
  #aheadMs = 0;

  constructor(serverNowMs: () => Promise<number>) {
    this.#serverNowMs = serverNowMs;
  }

  readonly nowMs = (): number => Date.now() + this.#aheadMs;

  /** Catches up with what the server has skipped. */
  async sync(): Promise<void> {
    const now = await this.#serverNowMs();
    this.#aheadMs = Math.max(this.#aheadMs, now - Date.now());
  }
}
