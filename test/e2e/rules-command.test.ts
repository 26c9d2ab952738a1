// "Always allow" from the terminal (S4.5): real processes, one `holdfast dev`, and the example's own stock as the oracle.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StandingRule } from '../../src/client/index.ts';
import { holdfast, holdfastJson, startHoldfast } from '../support/holdfast-command.ts';
import type { RunningCommand } from '../support/holdfast-command.ts';

const INVENTORY = fileURLToPath(new URL('../../examples/inventory/holdfast.config.ts', import.meta.url));
const BUYER = { HOLDFAST_SUBJECT: 'bob', HOLDFAST_ROLES: 'buyer' };

interface Answer {
  taskId: string;
  status: string;
  code: string;
  rule?: StandingRule;
  error?: { code: string; message: string };
}

let cwd: string;
let dev: RunningCommand;
beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-rules-'));
  dev = await startHoldfast({ cwd, env: { HOLDFAST_PORT: '0' } }, 'dev', '--config', INVENTORY);
});
afterAll(async () => {
  await dev.end();
  rmSync(cwd, { recursive: true, force: true });
});

let keys = 0;
async function reserve(quantity: number) {
  const asAnn = { cwd, env: { HOLDFAST_SUBJECT: 'ann' } };
  const args = ['--args', JSON.stringify({ sku: 'widget', quantity }), '--key', `rule-${(keys += 1)}`];
  const { value } = await holdfastJson<Answer>(asAnn, 'call', 'reserve_inventory', ...args);
  return (await holdfastJson<Answer>(asAnn, 'task', 'watch', value.taskId)).value;
}
const asBuyer = (...args: string[]) => holdfastJson<Answer>({ cwd, env: BUYER }, ...args);
const rules = async (...args: string[]) =>
  (await holdfastJson<StandingRule[]>({ cwd, env: BUYER }, 'rules', ...args)).value;

describe('holdfast task approve --always', () => {
  it('allows the same call from then on and no larger one, until the rule is revoked [S4.5] [case 25]', async () => {
    const asked = await reserve(101);
    expect(asked.status).toBe('awaiting_approval');
    const approved = await asBuyer('task', 'approve', asked.taskId, '--always', '--for', '7d');
    expect(approved).toMatchObject({
      code: 0,
      value: { code: 'approved', rule: { covers: { kind: 'call' } } },
    });
    const id = approved.value.rule?.id ?? '';
    expect(await reserve(101)).toMatchObject({ status: 'completed' });
    expect(await reserve(102)).toMatchObject({ status: 'awaiting_approval' });
    expect(await rules()).toMatchObject([{ id, by: { subject: 'bob' }, taskId: asked.taskId }]);
    expect((await asBuyer('rule', 'revoke', id, '--reason', 'once is enough')).code).toBe(0);
    expect(await rules()).toEqual([]);
    expect(await rules('--all')).toMatchObject([{ id, revoked: { by: 'bob', reason: 'once is enough' } }]);
    expect(await reserve(101)).toMatchObject({ status: 'awaiting_approval' });
    const audit = await holdfastJson<{ type: string }[]>({ cwd }, 'audit', 'show', id);
    expect(audit.value.map(({ type }) => type)).toEqual(['standing_rule_made', 'standing_rule_revoked']);
  });

  it('decides nothing when the rule would be none [S4.5]', async () => {
    const { taskId } = await reserve(105);
    const refused = await asBuyer('task', 'approve', taskId, '--always', '--for', '900d');
    expect(refused).toMatchObject({ code: 2, value: { error: { code: 'invalid_standing_rule' } } });
    expect((await asBuyer('task', 'show', taskId)).value.status).toBe('awaiting_approval');
  });
});

describe('holdfast rule allow', () => {
  it('covers what its comparisons match, and is drawn for people [S4.5]', async () => {
    const when = ['--when', '/quantity<=110', '--when', '/sku in ["widget","gadget"]'];
    const { code } = await asBuyer('rule', 'allow', 'reserve_inventory', ...when);
    expect(code).toBe(0);
    expect(await reserve(110)).toMatchObject({ status: 'completed' });
    expect(await reserve(111)).toMatchObject({ status: 'awaiting_approval' });
    const { stdout } = await holdfast({ cwd, env: BUYER }, 'rules');
    expect(stdout).toContain('/quantity <= 110 and /sku in ["widget","gadget"]');
  });

  it.each([
    [['--when', 'quantity<=110'], 'invalid_arguments', 2],
    [['--when', '/quantity<=many'], 'invalid_standing_rule', 2],
  ])('refuses %j with its field and shape [S4.5]', async (when, error, exit) => {
    const refused = await asBuyer('rule', 'allow', 'reserve_inventory', ...when);
    expect(refused).toMatchObject({ code: exit, value: { error: { code: error } } });
  });

  it('refuses an unknown rule and an unknown action [S4.5] [M2.6]', async () => {
    expect((await asBuyer('rule', 'revoke', 'rule_nobody')).value.error?.code).toBe(
      'standing_rule_not_found',
    );
    const unknown = await asBuyer('rule', 'allow', 'nothing_like_it', '--when', '/a=1');
    expect(unknown.value.error?.code).toBe('unknown_action');
  });
});
