/** The child's side of child-process.ts: its options, its notices, its stops. */
import type { Notice, Order, Reached, Stop } from './child-messages.ts';

export function childOptions<Options>(): Options {
  const text = process.env['HOLDFAST_TEST_OPTIONS'];
  if (text === undefined || !process.send) throw new Error('this is a child of a test (child-process.ts)');
  process.on('disconnect', () => process.exit(1)); // the test is gone
  return JSON.parse(text) as Options;
}

export function tell(notice: Notice): void {
  process.send?.(notice);
}

/** Blocks where the test wants it: announces the place, then waits for SIGKILL or `goOn`. */
export class Stops {
  private readonly stop: Stop | undefined;
  private isOver = false;
  private waiting: (() => void)[] = [];

  constructor(stop: Stop | undefined) {
    this.stop = stop;
  }

  async reach(place: Reached & { about?: 'effect' | 'rollback' }): Promise<void> {
    const { stop } = this;
    if (stop === undefined || this.isOver || stop.point !== place.point) return;
    if (stop.attempt !== undefined && stop.attempt !== place.attempt) return;
    if (stop.about !== undefined && stop.about !== place.about) return;
    if (stop.operationId !== undefined && stop.operationId !== place.operationId) return;
    tell({ notice: 'reached', place });
    await new Promise<void>((resolve) => this.waiting.push(resolve));
  }

  goOn(): void {
    this.isOver = true;
    for (const resolve of this.waiting.splice(0)) resolve();
  }
}

export function onOrders(carryOut: (order: Order) => Promise<unknown>): void {
  process.on('message', (order: Order) => {
    carryOut(order).then(
      (data) => tell({ notice: 'did', order: order.id, ...(data !== undefined && { data }) }),
      (error: unknown) => tell({ notice: 'did', order: order.id, error: plain(error) }),
    );
  });
}

function plain(error: unknown): { code: string; message: string } {
  if (!(error instanceof Error)) return { code: 'unknown', message: String(error) };
  const code = 'code' in error && typeof error.code === 'string' ? error.code : error.name;
  return { code, message: error.message };
}
