/** How many calls one principal may make, and that it is nobody else's concern. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { admitOne, createAdmission } from '../../src/gateway/admission.ts';
import type { Principal } from '../../src/task/plan.ts';

const principal = (subject: string, tenant = 'acme'): Principal => ({ tenant, subject, roles: [] });
const ann = principal('ann');
const admission = (limits: { callsPerSecondMax?: number; openCallsMax?: number } = {}, refused = vi.fn()) => {
  const made = createAdmission({ limits: { callsPerSecondMax: 3, openCallsMax: 2, ...limits }, refused });
  return { made, admit: (who: Principal) => admitOne(made, who) };
};

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

describe('calls a second', () => {
  it('beyond the limit are refused with when to come back, and taken again then [M7.2]', async () => {
    const { admit } = admission();
    for (let n = 0; n < 3; n += 1) (await admit(ann))();
    vi.advanceTimersByTime(400);
    await expect(admit(ann)).rejects.toMatchObject({
      code: 'too_many_calls',
      retryable: true,
      details: { limit: 'callsPerSecondMax', most: 3, retryAfterMs: 600 },
    });
    vi.advanceTimersByTime(601);
    await expect(admit(ann)).resolves.toBeTypeOf('function');
  });

  it('are not used up by anyone else, whatever their names run together to [M7.2]', async () => {
    const { admit } = admission();
    for (let n = 0; n < 10; n += 1) await admit(principal('x', 'evil')).catch(() => undefined);
    for (const other of [ann, principal('', 'evilx'), principal('x","evil')])
      await expect(admit(other)).resolves.toBeTypeOf('function');
  });

  it('count a batch as what it holds [M7.2]', async () => {
    const { made } = admission();
    await expect(made.count(ann, 4)).rejects.toMatchObject({ code: 'too_many_calls' });
  });
});

describe('open calls', () => {
  it('beyond the limit are refused until one ends; ending one twice frees one place [M7.2]', async () => {
    const refused = vi.fn();
    const { admit, made } = admission({ callsPerSecondMax: 100 }, refused);
    const leave = await admit(ann);
    await admit(ann);
    await expect(admit(ann)).rejects.toMatchObject({
      code: 'too_many_calls',
      details: { limit: 'openCallsMax', most: 2 },
    });
    expect(refused).toHaveBeenCalledWith('openCallsMax');
    await expect(admit(principal('bob'))).resolves.toBeTypeOf('function');
    leave();
    leave();
    await admit(ann);
    await expect(admit(ann)).rejects.toMatchObject({ code: 'too_many_calls' });
    expect(made.open(ann, 0)).toBeTypeOf('function'); // what holds no call needs no place
  });

  it('of ten thousand principals are forgotten when they ended and their second is over [M7.2]', async () => {
    const { made, admit } = admission();
    const leaves = await Promise.all(Array.from({ length: 10_000 }, (_, n) => admit(principal(`p${n}`))));
    expect(made.remembered).toBe(10_000);
    for (const leave of leaves.slice(1)) leave();
    expect(made.remembered).toBe(10_000);
    vi.advanceTimersByTime(1_001);
    expect(made.remembered).toBe(1);
    leaves[0]?.();
    expect(made.remembered).toBe(0);
  });
});
