/** The demo's chapter about a procedure: its last step is refused, and the freight desk's own log shows what is undone, in which order. */
import { setTimeout as delay } from 'node:timers/promises';
import { result } from './chapter.ts';
import type { Chapter, Performance } from './chapter.ts';
import { callTool } from './tool-call.ts';

interface FreightBooks {
  log: string[];
  funds: number;
  slots: number;
  carriers: number;
}

const LOOK_MS = 10;
/** No carrier takes that much. */
const CARGO = { cargo: 'c-7', weightKg: 20_001 };
const EXPECTED = ['reserve funds', 'reserve slot', 'release slot', 'release funds'];

export const sagaUndone: Chapter = async (performance) => {
  const { stage, say } = performance;
  const first = performance.worker;
  say(
    'another worker starts, which bundles the code of procedure book_cargo: funds, then a slot, then a carrier',
  );
  performance.worker = await stage.startWorker('procedures');
  await first.kill();
  say(`an agent books ${CARGO.weightKg} kg, more than any carrier takes; the freight desk's own log:`);
  const calling = callTool(stage.mcp, 'book_cargo', { ...CARGO, idempotencyKey: 'cargo-1' });
  const answer = await watched(performance, calling);
  const { log, funds, slots, carriers } = await stage.freight.books<FreightBooks>();
  const effects = funds + slots + carriers;
  return result(
    'a chain fails at its end',
    'undone in reverse, each step once',
    answer,
    effects,
    answer.task.status === 'failed' &&
      answer.task.effect === 'rolled_back' &&
      effects === 0 &&
      log.join() === EXPECTED.join(),
  );
};

/** Says each line of the desk's log as it appears, until the call is answered. */
async function watched<Answer>({ stage, say }: Performance, calling: Promise<Answer>): Promise<Answer> {
  let told = 0;
  const tellNew = async (): Promise<void> => {
    const { log } = await stage.freight.books<FreightBooks>();
    for (const line of log.slice(told)) say(`  ${line}`);
    told = log.length;
  };
  let isAnswered = false;
  const answering = calling.finally(() => (isAnswered = true));
  answering.catch(() => undefined); // thrown below
  while (!isAnswered) {
    await tellNew();
    await delay(LOOK_MS);
  }
  await tellNew();
  return answering;
}
