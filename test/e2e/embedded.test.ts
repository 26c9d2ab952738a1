import { fork } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, Connection } from '@temporalio/client';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { commandOf } from '../../src/embedded/command-of.ts';
import { startEmbeddedTemporal } from '../../src/embedded/index.ts';
import type { EmbeddedOptions, EmbeddedTemporal } from '../../src/embedded/index.ts';

let stateDir: string;
const servers: EmbeddedTemporal[] = [];
const owners: ChildProcess[] = [];
beforeEach(() => (stateDir = mkdtempSync(join(tmpdir(), 'holdfast-embedded-'))));
afterEach(async () => {
  for (const owner of owners.splice(0)) owner.kill('SIGKILL');
  for (const server of servers.splice(0)) await server.stop();
  rmSync(stateDir, { recursive: true, force: true });
});

const start = async (options: Partial<EmbeddedOptions> = {}): Promise<EmbeddedTemporal> => {
  const server = await startEmbeddedTemporal({ stateDir, ui: false, ...options });
  servers.push(server);
  return server;
};

/** Starts the server in a process of its own and returns what that process said. */
const startElsewhere = async () => {
  const owner = fork(join(import.meta.dirname, 'embedded-owner.ts'), [stateDir], {
    execArgv: ['--experimental-strip-types', '--disable-warning=ExperimentalWarning'],
  });
  owners.push(owner);
  const [said] = (await once(owner, 'message')) as [{ address?: string; pid?: number; code?: string }];
  return { owner, ...said };
};

const withClient = async <T>(address: string, use: (client: Client) => Promise<T>): Promise<T> => {
  const connection = await Connection.connect({ address });
  try {
    return await use(new Client({ connection }));
  } finally {
    await connection.close();
  }
};
const startWorkflow = (address: string, workflowId: string) =>
  withClient(address, (client) => client.workflow.start('nobody-runs-it', { workflowId, taskQueue: 'none' }));
const statusOf = (address: string, workflowId: string) =>
  withClient(address, async (client) => (await client.workflow.getHandle(workflowId).describe()).status.name);

const isAlive = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

describe('the embedded Temporal server', () => {
  it('is healthy when the promise resolves, with our search attributes, on loopback', async () => {
    const server = await start();
    expect(server.address).toMatch(/^127\.0\.0\.1:\d+$/);
    await withClient(server.address, async (client) => {
      const found = await client.connection.operatorService.listSearchAttributes({
        namespace: server.namespace,
      });
      expect(found.customAttributes).toMatchObject({
        HoldfastStatus: expect.anything(),
        HoldfastTenant: expect.anything(),
        HoldfastAction: expect.anything(),
        HoldfastWaitingSince: expect.anything(),
      });
    });
    expect(statSync(join(stateDir, 'temporal.db')).mode & 0o077).toBe(0);
    expect(statSync(join(stateDir, 'temporal.json')).mode & 0o077).toBe(0);
  });

  it('keeps its data and its address across a restart', async () => {
    const first = await start();
    await startWorkflow(first.address, 'kept');
    await first.stop();
    const second = await start();
    expect(second.address).toBe(first.address);
    expect(await statusOf(second.address, 'kept')).toBe('RUNNING');
  });

  it('keeps nothing when it is ephemeral', async () => {
    const first = await start({ ephemeral: true });
    await startWorkflow(first.address, 'lost');
    await first.stop();
    const second = await start({ ephemeral: true });
    await expect(statusOf(second.address, 'lost')).rejects.toThrow(/not found/i);
  });

  it('says when the server ended by itself, and frees the folder on stop', async () => {
    const server = await start();
    process.kill(server.pid, 'SIGKILL');
    expect(await server.exited).toEqual({ code: null, signal: 'SIGKILL' });
    await server.stop();
    await server.stop();
    expect((await start()).pid).not.toBe(server.pid);
  });

  it('is gone within 5 s after a crash of its owner by SIGKILL, and starts again with its data', async () => {
    const { owner, address = '', pid = 0 } = await startElsewhere();
    await startWorkflow(address, 'survives the crash');
    owner.kill('SIGKILL');
    await vi.waitFor(() => expect(isAlive(pid)).toBe(false), { timeout: 5_000, interval: 50 });
    const next = await start();
    expect(await statusOf(next.address, 'survives the crash')).toBe('RUNNING');
  });

  it('can be started again in the same moment its owner is killed', async () => {
    const { owner, address = '', pid = 0 } = await startElsewhere();
    await startWorkflow(address, 'at once');
    owner.kill('SIGKILL');
    await once(owner, 'exit');
    const next = await start();
    expect(await commandOf(pid)).not.toContain('start-dev');
    expect(await statusOf(next.address, 'at once')).toBe('RUNNING');
  });

  it('runs once per state folder: a second start is told the pid of the first', async () => {
    await start();
    await expect(start()).rejects.toMatchObject({ code: 'state_dir_in_use', details: { pid: process.pid } });
    expect((await startElsewhere()).code).toBe('state_dir_in_use');
  });

  it('lets exactly one of several simultaneous starters win', async () => {
    const answers = await Promise.all([startElsewhere(), startElsewhere(), startElsewhere()]);
    expect(answers.filter(({ address }) => address !== undefined)).toHaveLength(1);
    expect(answers.filter(({ code }) => code === 'state_dir_in_use')).toHaveLength(2);
  });

  it('fails with the last words of a program that is no Temporal, and frees the folder', async () => {
    const impostor = join(stateDir, 'impostor');
    writeFileSync(impostor, '#!/bin/sh\necho "I am no server" >&2\nexit 3\n', { mode: 0o755 });
    const env = { ...process.env, TEMPORAL_CLI_PATH: impostor };
    const failure = start({ env });
    await expect(failure).rejects.toMatchObject({ code: 'start_failed' });
    await expect(failure).rejects.toThrow('I am no server');
    await start();
  });
});
