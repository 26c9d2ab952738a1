/**
 * A release while tasks are open (S3.3): workers are builds of one deployment on the real server, and a task that was
 * parked under the old build ends under the new one, with one effect.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import type { Finding } from '../../src/cli/doctor.ts';
import { examineDeployment } from '../../src/cli/doctor-deployment.ts';
import { applied, defineAction, implementAction, notApplied } from '../../src/index.ts';
import { createTestHoldfast, openTestServer } from '../../src/testing/index.ts';
import type { TaskAnswer } from '../../src/client/task-client.ts';
import type { TestHoldfast, TestServer } from '../../src/testing/index.ts';
import { createLogger, startWorker } from '../../worker/index.ts';
import type { HoldfastWorker } from '../../worker/index.ts';

const ann = { tenant: 'local', subject: 'ann', roles: [] };
const bob = { tenant: 'local', subject: 'bob', roles: [] };
const WAIT = { timeoutMs: 30_000 };
const NAME = 'money';

/** What the target was sent: the operation, and the build whose handler sent it. */
const sent: { operationId: string; build: string }[] = [];
const sentBy = (operationId: string): string[] =>
  sent.filter((each) => each.operationId === operationId).map(({ build }) => build);

/** The action as that build has it: the newer with another version and other thresholds (field case 15). */
const payOf = (build: string, version: number) =>
  implementAction(
    defineAction({
      name: 'pay',
      version,
      description: 'Pays somebody.',
      effect: 'conditional',
      input: z.object({ amount: z.int() }),
      output: z.object({ paid: z.int() }),
      approval: ({ amount }) => amount > 10 * version && {},
      rollback: { kind: 'outOfBand' },
      verify: { none: 'the target is asked by lookup' },
      deadlines: { attempt: version === 1 ? '5s' : '7s' },
    }),
    {
      lookup: async ({ operationId, input }) =>
        sentBy(operationId).length > 0 ? applied({ paid: input.amount }) : notApplied(),
      execute: async ({ amount }, { operationId }) => {
        sent.push({ operationId, build });
        return { paid: amount };
      },
    },
  );

let server: TestServer;
let holdfast: TestHoldfast;
const builds = new Map<string, HoldfastWorker>();
beforeAll(async () => {
  server = await openTestServer('local');
  holdfast = await createTestHoldfast({ actions: [payOf('client', 1)], server, worker: false });
});
afterAll(async () => {
  await Promise.all([...builds.keys()].map(retire));
  await holdfast.close();
  await server.close();
});

async function start(
  build: string,
  version: number,
  versioning: 'auto-upgrade' | 'pinned' = 'auto-upgrade',
): Promise<void> {
  const { ledger, taskQueue, namespace, env } = holdfast;
  const worker = await startWorker({
    connection: env.nativeConnection,
    namespace,
    taskQueue,
    ledger,
    actions: [payOf(build, version)],
    encryptionKeys: [],
    hmacKey: null,
    log: createLogger({ level: 'fatal' }),
    deployment: { name: NAME, buildId: build, versioning },
  });
  builds.set(build, worker);
}

async function retire(build: string): Promise<void> {
  await builds.get(build)?.stop();
  builds.delete(build);
}

/** As `temporal worker deployment set-current-version` does, once the server has heard of the build. */
async function makeCurrent(buildId: string): Promise<void> {
  const { env, namespace } = holdfast;
  for (let left = 100; ; left -= 1) {
    try {
      await env.connection.workflowService.setWorkerDeploymentCurrentVersion({
        namespace,
        deploymentName: NAME,
        buildId,
        identity: 'test',
      });
      return;
    } catch (error) {
      if (left === 0) throw error;
      await delay(100);
    }
  }
}

const pay = (key: string, amount: number) =>
  holdfast.client.start({ action: 'pay', args: { amount }, key, principal: ann });

async function park(key: string): Promise<string> {
  const { taskId } = await pay(key, 100);
  expect((await holdfast.client.wait(taskId, ann, WAIT)).status).toBe('awaiting_approval');
  return taskId;
}

async function approved(taskId: string): Promise<TaskAnswer> {
  const { approval } = await holdfast.client.detail(taskId, ann);
  const decision = { kind: 'approve', callId: approval?.callId ?? '' } as const;
  expect(await holdfast.client.decide(taskId, bob, decision)).toMatchObject({ accepted: true });
  return holdfast.client.wait(taskId, ann, WAIT);
}

describe('workers as builds of a deployment', () => {
  test('an approval parked under one build is given under the next, with one effect [S3.3][case 15]', async () => {
    await start('a', 1);
    await makeCurrent('a');
    const taskId = await park('parked');

    await start('b', 2);
    await makeCurrent('b');
    await retire('a');
    const ended = await approved(taskId);
    expect(ended).toMatchObject({ status: 'completed', effect: 'applied', result: { paid: 100 } });
    expect(sentBy(ended.operationId)).toEqual(['b']);
  });

  test('a build that was not made current gets no task, though its workers run [S3.3]', async () => {
    await start('c', 3);
    const keys = Array.from({ length: 10 }, (_, index) => `new-${index}`);
    const started = await Promise.all(keys.map((key) => pay(key, 1)));
    const ended = await Promise.all(started.map(({ taskId }) => holdfast.client.wait(taskId, ann, WAIT)));
    expect(ended.map(({ status }) => status)).toEqual(keys.map(() => 'completed'));
    expect(ended.map(({ operationId }) => sentBy(operationId))).toEqual(keys.map(() => ['b']));

    const looked = (buildId: string, name = NAME): Promise<Finding> =>
      examineDeployment(server.env.connection, holdfast.namespace, {
        name,
        buildId,
        versioning: 'auto-upgrade',
      });
    expect(await looked('b')).toMatchObject({ verdict: 'ok' });
    expect(await looked('c')).toMatchObject({
      verdict: 'warning',
      found: 'build c of money gets no new task: b is current',
    });
    expect(await looked('c', 'misspelt')).toMatchObject({ verdict: 'warning' });

    await makeCurrent('c');
    const { taskId } = await pay('after', 1);
    const { operationId } = await holdfast.client.wait(taskId, ann, WAIT);
    expect(sentBy(operationId)).toEqual(['c']);
  });

  test('pinned, an approval is acted on by the build that asked for it, while that runs [S3.3]', async () => {
    await start('d', 4, 'pinned');
    await makeCurrent('d');
    const taskId = await park('pinned');
    await start('e', 5, 'pinned');
    await makeCurrent('e');
    const { status, operationId } = await approved(taskId);
    expect(status).toBe('completed');
    expect(sentBy(operationId)).toEqual(['d']);
  });
});
