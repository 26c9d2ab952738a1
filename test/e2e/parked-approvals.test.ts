// Fifty calls wait for a person while gateway, worker and the Temporal server are killed (field case 20). Real processes;
// the provider's books, which outlive them all, count.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startProvider } from '../../examples/provider/service.ts';
import type { Provider } from '../../examples/provider/service.ts';
import { startEmbeddedTemporal } from '../../src/embedded/index.ts';
import type { EmbeddedTemporal } from '../../src/embedded/index.ts';
import { holdfast, holdfastJson, startHoldfast } from '../support/holdfast-command.ts';
import type { Place, RunningCommand } from '../support/holdfast-command.ts';
import { answerOf, post } from '../support/mcp-messages.ts';

const CONFIG = fileURLToPath(new URL('../support/parked.config.ts', import.meta.url));
const PARKED = 50;
const CAPABILITIES = { elicitation: {} };

interface Button {
  taskId: string;
  callId: string;
  fingerprint: string;
  args: { customer: string; amountCents: number; idempotencyKey: string };
  /** What an MCP client brings back with its person's answer. */
  requestState: string;
}
interface Waiting {
  taskId: string;
  status: string;
  approval: { callId: string; fingerprint: string };
}

let cwd: string;
let provider: Provider;
let temporal: EmbeddedTemporal;
let place: Place;
let gateway: RunningCommand;
let worker: RunningCommand;

const startTemporal = () => startEmbeddedTemporal({ stateDir: join(cwd, 'temporal'), ui: false });
async function startOurs(): Promise<void> {
  [worker, gateway] = await Promise.all([startHoldfast(place, 'worker'), startHoldfast(place, 'gateway')]);
}

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-parked-'));
  [provider, temporal] = await Promise.all([startProvider(), startTemporal()]);
  place = {
    cwd,
    env: {
      HOLDFAST_CONFIG: CONFIG,
      HOLDFAST_PROVIDER_URL: provider.url,
      HOLDFAST_PORT: '0',
      HOLDFAST_LOG_LEVEL: 'error',
      HOLDFAST_DATABASE_URL: `sqlite:${join(cwd, 'ledger.db')}`,
      HOLDFAST_ENCRYPTION_KEY: Buffer.alloc(32, 7).toString('base64'),
      TEMPORAL_ADDRESS: temporal.address,
      TEMPORAL_NAMESPACE: temporal.namespace,
    },
  };
  expect((await holdfast(place, 'migrate')).code).toBe(0);
  await startOurs();
});
afterAll(async () => {
  await Promise.all([worker.end('SIGKILL'), gateway.end('SIGKILL')]);
  await temporal.stop();
  await provider.close();
  rmSync(cwd, { recursive: true, force: true });
});

const callTool = async (args: object, answer: object = {}) =>
  answerOf(
    await post(`${gateway.url}/mcp`, {
      method: 'tools/call',
      params: { name: 'charge', arguments: args, ...answer },
      capabilities: CAPABILITIES,
    }),
  );

async function park(index: number): Promise<Button> {
  const args = { customer: `c${index}`, amountCents: 100 + index, idempotencyKey: `parked-${index}` };
  const { result } = await callTool(args);
  expect(result).toMatchObject({ resultType: 'input_required' });
  const meta = result?._meta as { 'holdfast/task': { taskId: string } };
  const { taskId } = meta['holdfast/task'];
  return { taskId, callId: 'action#1', fingerprint: '', args, requestState: String(result?.requestState) };
}

const press = ({ args, callId, requestState }: Button, decision: string) =>
  callTool(args, {
    requestState,
    inputResponses: { [callId]: { action: 'accept', content: { decision } } },
  });

async function killEverything(): Promise<void> {
  const dead = temporal;
  const gone = [worker.end('SIGKILL'), gateway.end('SIGKILL'), dead.exited];
  process.kill(dead.pid, 'SIGKILL');
  await Promise.all(gone);
  await dead.stop(); // frees its folder
}

const inbox = async () =>
  (await holdfastJson<Waiting[]>(place, 'tasks', '--status', 'input_required', '--limit', '100')).value;

test('50 parked approvals survive a crash of everything; old buttons still count, once, for their own call [case 20][S4.1][S4.3]', async () => {
  const buttons: Button[] = [];
  for (let from = 0; from < PARKED; from += 10)
    buttons.push(...(await Promise.all(Array.from({ length: 10 }, (_, index) => park(from + index)))));
  await killEverything();
  temporal = await startTemporal();
  const orphan = await holdfastJson<{ error: { code: string } }>(
    { ...place, env: { ...place.env, TEMPORAL_ADDRESS: '127.0.0.1:1' } },
    ...['task', 'approve', buttons[0]?.taskId ?? ''],
  );
  expect(orphan).toMatchObject({ code: 3, value: { error: { code: 'engine_unavailable' } } });
  await startOurs();

  await expect.poll(async () => (await inbox()).length, { timeout: 60_000 }).toBe(PARKED);
  expect(provider.books().charges).toBe(0);
  const listed = new Map((await inbox()).map((task) => [task.taskId, task]));
  expect([...listed.keys()].sort()).toEqual(buttons.map(({ taskId }) => taskId).sort());

  const [first, second, third] = buttons as [Button, Button, Button];
  // A button pressed that was drawn before the crash.
  expect((await press(first, 'approve')).result).toMatchObject({ structuredContent: { chargeId: 'ch_1' } });
  // Pressed again, and the other one after it: the call is done, nothing is sent.
  expect((await press(first, 'approve')).result).toMatchObject({ structuredContent: { chargeId: 'ch_1' } });
  const denied = await press(first, 'reject');
  expect(denied.result).toMatchObject({ structuredContent: { chargeId: 'ch_1' } });
  expect(provider.books().charges).toBe(1);

  // From the terminal, about a call that the approver does not mean: refused, in words a script can tell.
  const wrong = await holdfastJson<{ code: string }>(
    place,
    ...['task', 'approve', second.taskId, '--call', 'action#7'],
  );
  expect(wrong).toMatchObject({ code: 1, value: { code: 'not_open' } });
  const approved = await holdfastJson<{ code: string }>(
    place,
    ...['task', 'approve', second.taskId, '--call', second.callId],
  );
  expect(approved).toMatchObject({ code: 0, value: { code: 'approved' } });
  await expect.poll(() => provider.books().charges, { timeout: 30_000 }).toBe(2);
  const late = await holdfastJson<{ code: string }>(
    place,
    ...['task', 'reject', second.taskId, '--call', second.callId],
  );
  expect(late.code).toBe(1);
  expect(['already_decided', 'already_ended']).toContain(late.value.code);

  // A state that somebody changed is refused, and decides nothing.
  const forged = await press({ ...third, requestState: `${third.requestState.slice(0, -4)}AAAA` }, 'approve');
  expect(forged.error).toMatchObject({ code: -32602 });
  await expect.poll(async () => (await inbox()).length, { timeout: 60_000 }).toBe(PARKED - 2);
  expect(provider.books()).toMatchObject({ charges: 2, chargedCents: 201 });
});
