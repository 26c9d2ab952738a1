/**
 * A durable call against the same effect in a bare workflow. Client, worker and gateway share one process and one native
 * connection (`serve`), both sides start eagerly; Holdfast's worker and the bare one have the same options.
 */
import { bareCall, durableCall, effectAlone } from '../calls.ts';
import { figure } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { pairedRatio, ratio, takeRounds, takeTurns } from '../pairs.ts';
import { shorter } from '../size.ts';
import type { Size } from '../size.ts';
import type { System } from '../system.ts';

const OF_BARE = '× bare workflow, one activity';
const OF_LOCAL = '× bare workflow, one local activity';

export async function callFigures(system: System, size: Size): Promise<Figure[]> {
  const contenders = contendersOf(system, true);
  await takeTurns(contenders, size.warmUp);
  const p50 = await takeTurns(contenders, size.turns);
  const { effect: _nothingDurable, leased: _timedAlone, ...durable } = contenders;
  await takeRounds(durable, { ...size.rounds, rounds: 1 });
  const rate = await takeRounds(durable, size.rounds);
  return [
    figure('inline call, p50', ratio(p50.inline, p50.bare), OF_BARE, { atMost: 0.85 }),
    figure('inline call, throughput at 50', pairedRatio(rate.inline, rate.bare), OF_BARE, { atLeast: 1.1 }),
    figure('inline call, p50 (local)', ratio(p50.inline, p50.bareLocal), OF_LOCAL, { atMost: 1.25 }),
    figure('inline call, throughput (local)', pairedRatio(rate.inline, rate.bareLocal), OF_LOCAL),
    figure('dispatched call, p50', ratio(p50.dispatched, p50.bare), OF_BARE, { atMost: 1.15 }),
    figure('dispatched call, throughput at 50', pairedRatio(rate.dispatched, rate.bare), OF_BARE, {
      atLeast: 0.9,
    }),
    figure(
      'lease, uncontended call, p50',
      ratio(p50.leased, p50.dispatched),
      '× dispatched call without one',
    ),
    figure('inline call, p50 (effect)', ratio(p50.inline, p50.effect), '× the effect alone'),
    figure('bare workflow, p50 (effect)', ratio(p50.bare, p50.effect), '× the effect alone'),
  ];
}

/** The same where client and workers are processes of their own: no eager start, and the end comes from the engine. */
export async function separateCallFigures(system: System, size: Size): Promise<Figure[]> {
  const { effect: _here, leased: _alone, ...contenders } = contendersOf(system, false);
  await takeTurns(contenders, shorter(size.warmUp));
  const p50 = await takeTurns(contenders, size.separate);
  return [
    figure('inline call, p50, separate processes', ratio(p50.inline, p50.bare), OF_BARE),
    figure('inline call, p50, separate (local)', ratio(p50.inline, p50.bareLocal), OF_LOCAL),
    figure('dispatched call, p50, separate processes', ratio(p50.dispatched, p50.bare), OF_BARE),
  ];
}

function contendersOf({ holdfast, principal }: System, isEager: boolean) {
  const caller = { client: holdfast.client, temporal: holdfast.temporal, principal, isEager };
  return {
    inline: durableCall(caller, 'book_inline'),
    dispatched: durableCall(caller, 'book_dispatched'),
    leased: durableCall(caller, 'book_leased'),
    bare: bareCall(caller, 'bareActivity'),
    bareLocal: bareCall(caller, 'bareLocalActivity'),
    effect: effectAlone,
  };
}
