/** The lease on one resource against messages in any order: duplicated, late, stale, from owners that die (S8). */
import { strict as assert } from 'node:assert';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { LEASE_WAITERS_MAX, decideLease, freeLease, reduceLease } from '../../src/task/lease.ts';
import type { LeaseEvent, LeaseRequest, LeaseState } from '../../src/task/lease.ts';
import { holds } from '../support/property.ts';

const OWNERS = ['a', 'b', 'c', 'd'] as const;
type Owner = (typeof OWNERS)[number];

/** What may happen next; `back` is how far the clock steps back before it. */
type Move =
  | {
      move: 'ask' | 'ask_again' | 'renew' | 'release' | 'stale_release' | 'stale_ask' | 'die';
      owner: Owner;
      back: number;
    }
  | { move: 'pass'; ms: number };

const moves: fc.Arbitrary<Move[]> = fc.array(
  fc.oneof(
    fc.record({
      move: fc.constantFrom(
        ...([
          'ask',
          'ask',
          'ask',
          'ask_again',
          'renew',
          'release',
          'stale_release',
          'stale_ask',
          'die',
        ] as const),
      ),
      owner: fc.constantFrom(...OWNERS),
      back: fc.constantFrom(0, 0, 0, 5_000),
    }),
    fc.record({ move: fc.constant('pass' as const), ms: fc.constantFrom(1, 400, 1_000, 3_000) }),
  ),
  { maxLength: 60 },
);

const LEASE_MS = 1_000;

/** Plays workflow `lease` by hand, and keeps what it must have granted, in the order in which it was asked for. */
class Stage {
  state: LeaseState = freeLease();
  now = 1_000_000;
  readonly fences: number[] = [];
  readonly requests: Record<Owner, number> = { a: 0, b: 0, c: 0, d: 0 };
  readonly dead = new Set<string>();
  /** Who waits, in order of asking. */
  readonly line: string[] = [];

  apply(event: LeaseEvent): void {
    const before = this.state;
    this.state = reduceLease(before, event);
    const { holder, fence } = this.state;
    assert(fence >= before.fence, 'the newest fence fell');
    assert.deepEqual(JSON.parse(JSON.stringify(this.state)), this.state, 'state is plain JSON');
    if (holder !== null && holder.fence !== before.holder?.fence) this.granted(holder.taskId, holder.fence);
    const isKept = event.type === 'acquire' && before.holder !== null && event.at < before.holder.until;
    if (isKept || (holder !== null && holder.fence === before.holder?.fence))
      assert((holder?.until ?? 0) >= (before.holder?.until ?? 0), 'a lease was shortened');
    const owners = this.state.queue.map(({ taskId }) => taskId);
    assert.equal(new Set(owners).size, owners.length, 'an owner waits twice');
    assert(!owners.includes(holder?.taskId ?? ''), 'the holder waits for itself');
  }

  private granted(owner: string, fence: number): void {
    assert(
      this.fences.every((earlier) => fence > earlier),
      'a fence did not grow',
    );
    this.fences.push(fence);
    if (this.line.includes(owner)) assert.equal(this.line.shift(), owner, 'not first come, first served');
  }

  /** Carries out verdicts until there is only waiting. */
  settle(): void {
    for (let steps = 0; steps < 100; steps += 1) {
      const verdict = decideLease(this.state, this.now);
      if (verdict.do === 'wait' || verdict.do === 'rest') return;
      if (verdict.do === 'grant') this.apply({ type: 'granted', at: this.now });
      else if (verdict.do === 'expire') this.apply({ type: 'expired', fence: verdict.fence });
      else if (this.dead.has(verdict.holder.taskId))
        this.apply({ type: 'holder_gone', fence: verdict.holder.fence });
      else this.apply({ type: 'told', grant: verdict.holder });
    }
    throw new Error('it spins');
  }

  play(move: Move): void {
    if (move.move === 'pass') {
      this.now += move.ms;
      return this.settle();
    }
    this.now -= move.back;
    this.send(move);
    this.settle();
    this.now += move.back;
    this.settle(); // what was granted by the earlier clock may be over by this one
    const waiting = this.state.queue.map(({ taskId }) => taskId);
    assert.deepEqual(waiting, this.line, 'a waiter was lost, or has another place');
  }

  private send({ move, owner }: Exclude<Move, { move: 'pass' }>): void {
    const { state } = this;
    const ask = (request: number, more: Partial<LeaseRequest> = {}) =>
      this.apply({
        type: 'acquire',
        request: { taskId: owner, request, leaseMs: LEASE_MS, ...more },
        at: this.now,
      });
    const isHolder = state.holder?.taskId === owner && state.holder.until > this.now;
    switch (move) {
      case 'ask':
      case 'renew': {
        this.requests[owner] += 1;
        if (!isHolder && !this.line.includes(owner)) this.line.push(owner);
        return ask(this.requests[owner], move === 'renew' && isHolder ? { holding: state.fence } : {});
      }
      case 'ask_again':
        return this.unchanged(() => ask(this.requests[owner]), isHolder || this.line.includes(owner));
      case 'stale_ask':
        return this.unchanged(() => ask(this.requests[owner] - 1), isHolder || this.line.includes(owner));
      case 'release':
        if (this.line.includes(owner)) this.line.splice(this.line.indexOf(owner), 1);
        return this.apply({
          type: 'release',
          release: { taskId: owner, request: this.requests[owner] },
          at: this.now,
        });
      case 'stale_release': {
        const fence = (state.holder?.fence ?? 1) - 1;
        const release = { taskId: owner, request: this.requests[owner], fence };
        return this.unchanged(() => this.apply({ type: 'release', release, at: this.now }), isHolder);
      }
      case 'die':
        this.dead.add(owner);
        return undefined;
    }
  }

  /** For who is there already; a request by who is not is a new one, whatever its number. */
  private unchanged(act: () => void, isThere: boolean): void {
    if (!isThere) return;
    const before = this.state;
    act();
    const untold = (state: LeaseState) => ({
      ...state,
      holder: state.holder && { ...state.holder, isTold: true },
    });
    assert.deepEqual(untold(this.state), untold(before), 'a repeat changed something');
  }
}

describe('the lease on one resource', () => {
  test('has one holder, first come first served, under fences that only grow, whatever comes twice, late or out of order [S8.1][S8.2][S8.5]', () => {
    holds('lease', moves, (script) => {
      const stage = new Stage();
      for (const move of script) stage.play(move);
      // Nobody is lost: everybody who waits gets it once those before let go or die out.
      for (let turns = 0; stage.state.queue.length > 0; turns += 1) {
        assert(turns < 100, 'a waiter never gets it');
        stage.now = Math.max(stage.now, stage.state.holder?.until ?? 0);
        stage.settle();
      }
    });
  });

  const acquire = (
    taskId: string,
    request: number,
    at: number,
    more: Partial<LeaseRequest> = {},
  ): LeaseEvent => ({
    type: 'acquire',
    request: { taskId, request, leaseMs: LEASE_MS, ...more },
    at,
  });
  const after = (...events: LeaseEvent[]): LeaseState => events.reduce(reduceLease, freeLease());

  test('a holder that asks anew keeps its turn under a new fence: an attempt that it lost is too late [S8.2]', () => {
    const first = after(acquire('a', 1, 100), { type: 'granted', at: 100 }, acquire('b', 1, 101));
    const again = reduceLease(first, acquire('a', 2, 150));
    expect(again.holder).toMatchObject({ taskId: 'a', request: 2, fence: 150, until: 1_150, isTold: false });
    expect(again.queue.map(({ taskId }) => taskId)).toEqual(['b']);
  });

  test('the same request again is told its grant again, and is no second one [S8.2]', () => {
    const held = after(acquire('a', 1, 100), { type: 'granted', at: 100 });
    const told = reduceLease(held, { type: 'told', grant: { request: 1, fence: 100, until: 1_100 } });
    expect(decideLease(told, 200)).toEqual({ do: 'wait', until: 1_100 });
    const again = reduceLease(told, acquire('a', 1, 200));
    expect(decideLease(again, 200)).toMatchObject({ do: 'tell', holder: { request: 1, fence: 100 } });
  });

  test('a renewal keeps the fence and lengthens, also where the clock stepped back [S8.5]', () => {
    const held = after(acquire('a', 1, 5_000), { type: 'granted', at: 5_000 });
    const renewed = reduceLease(held, acquire('a', 2, 5_600, { holding: 5_000 }));
    expect(renewed.holder).toMatchObject({ fence: 5_000, until: 6_600, request: 2 });
    const steppedBack = reduceLease(renewed, acquire('a', 3, 1_000, { holding: 5_000 }));
    expect(steppedBack.holder).toMatchObject({ fence: 5_000, until: 6_600, request: 3 });
    expect(decideLease(steppedBack, 1_000)).toMatchObject({ do: 'tell' });
  });

  test('one that comes too late renews nothing: it waits its turn [S8.2]', () => {
    const taken = after(
      acquire('a', 1, 100),
      { type: 'granted', at: 100 },
      acquire('b', 1, 101),
      { type: 'expired', fence: 100 },
      { type: 'granted', at: 1_100 },
      acquire('a', 2, 1_101, { holding: 100 }),
    );
    expect(taken.holder).toMatchObject({ taskId: 'b', fence: 1_100 });
    expect(taken.queue).toEqual([{ taskId: 'a', request: 2, leaseMs: LEASE_MS }]);
  });

  test('a bare release with another fence than the holder’s is ignored [S8.2]', () => {
    const held = after(acquire('a', 1, 100), { type: 'granted', at: 100 });
    const wrong = reduceLease(held, {
      type: 'release',
      release: { taskId: 'a', request: 1, fence: 99 },
      at: 101,
    });
    expect(wrong).toBe(held);
    const right = reduceLease(held, {
      type: 'release',
      release: { taskId: 'a', request: 1, fence: 100 },
      at: 101,
    });
    expect(right.holder).toBeNull();
  });

  test('fences grow over a lease that rested and began anew, also behind a clock that was set back [S8.2][S8.5]', () => {
    const before = after(acquire('a', 1, 9_000), { type: 'granted', at: 9_000 });
    const later = after(acquire('b', 1, 9_001), { type: 'granted', at: 9_001 });
    expect(later.fence).toBeGreaterThan(before.fence);
    const setBack = after(acquire('b', 1, 10, { above: 9_000 }), { type: 'granted', at: 10 });
    expect(setBack.fence).toBe(9_001);
    expect(setBack.holder).toMatchObject({ fence: 9_001, until: 10 + LEASE_MS });
  });

  test('what fits in no queue is left to ask again [S8.2]', () => {
    const full = {
      ...freeLease(),
      queue: Array.from({ length: LEASE_WAITERS_MAX }, (_, n) => ({
        taskId: `t${n}`,
        request: 1,
        leaseMs: 1,
      })),
    };
    expect(reduceLease(full, acquire('late', 1, 1)).queue).toHaveLength(LEASE_WAITERS_MAX);
  });

  test('however long the names, the queue fits in one payload [S3.6][S8.2]', () => {
    let state = freeLease();
    for (let n = 0; n < 700; n += 1)
      state = reduceLease(state, acquire(`${n}`.padEnd(1_000, '\u20ac'), 1, 1));
    expect(state.queue.length).toBeGreaterThan(100);
    expect(Buffer.byteLength(JSON.stringify(state))).toBeLessThan(2 * 1024 * 1024);
  });
});
