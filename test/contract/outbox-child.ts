/** A worker's relay in a process of its own: its sink is the test, which says when a message was taken. */
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { OutboxRelay } from '../../worker/outbox-relay.ts';

const { url } = JSON.parse(process.env['HOLDFAST_TEST_OPTIONS'] ?? '') as { url: string };
const silent = { debug() {}, info() {}, warn() {}, error() {} };

process.on('disconnect', () => process.exit(1));
const ledger = await openLedger({ url });
// The message has left this process; whether the mark still gets written is the test's to decide.
new OutboxRelay({
  ledger,
  log: silent,
  deliveryMs: 60_000,
  sink: {
    deliver: ({ id }) =>
      new Promise((resolve) => {
        process.once('message', () => resolve());
        process.send?.(id);
      }),
  },
}).start();
