/** The pure parts of a connection to an upstream server. */
import { describe, expect, test } from 'vitest';
import { LIMITS } from '../../src/contract/limits.ts';
import { cleanerOf } from '../../src/upstream/connection/address.ts';
import { exactResult } from '../../src/upstream/connection/exact-result.ts';
import { createLineLog } from '../../src/upstream/connection/log.ts';
import { createPace } from '../../src/upstream/connection/pace.ts';
import { readTools } from '../../src/upstream/connection/tool-list.ts';
import { upstreamReply } from '../../src/upstream/connection/upstream-reply.ts';
import type { Connection } from '../../src/upstream/connection/connection.ts';
import { createRemoteTasks } from '../../src/upstream/connection/remote-tasks.ts';
import { targetOf } from '../../src/upstream/target.ts';
import type { Link } from '../../src/mcp-client/link.ts';
import type { Reply } from '../../src/mcp-client/reply.ts';
import type { JsonObject } from '../../src/task/json.ts';

const asIs = (text: string) => text;

describe('the pace of openings', () => {
  test('[M8.3] one that lasted is replaced at once; a circle is slowed down, up to a cap', () => {
    const pace = createPace();
    const opened: number[] = [];
    for (let now = 0; now < 60_000; now += 10) if (pace.next(now) === 0) opened.push(now);
    const pauses = opened.slice(1).map((at, place) => at - (opened[place] ?? 0));
    expect(pauses.slice(0, 6)).toEqual([10, 250, 500, 1_000, 2_000, 4_000]);
    expect(Math.max(...pauses)).toBe(8_000);
    expect(pace.next(120_000)).toBe(0);
    expect(pace.next(120_001)).toBe(0);
    expect(pace.next(120_002)).toBe(249);
  });
});

describe('an exact result', () => {
  test('is the same where nothing is lost', () => {
    const result = { content: [{ type: 'text', text: 'x' }], structuredContent: { a: [1.5, -2, null] } };
    expect(exactResult(result)).toEqual(result);
  });

  test('[M1.6] holds the rest where blocks or members can not be kept, and still says that it is an error', () => {
    const result = {
      content: [
        { type: 'text', text: 'x' },
        { type: 'odd', n: 2 ** 53 },
        { type: 'text', text: 'y' },
      ],
      structuredContent: { n: 1e300 },
      other: { n: Number.POSITIVE_INFINITY },
      isError: true,
    };
    const kept = exactResult(result);
    expect(Object.keys(kept).sort()).toEqual(['content', 'isError']);
    const texts = (kept.content as { text: string }[]).map(({ text }) => text);
    expect(texts[0]).toBe('x');
    expect(texts[1]).toContain('/content/1/n can not be kept exactly');
    expect(texts[2]).toBe('y');
    expect(texts.slice(3).join()).toContain('/structuredContent/n');
    expect(texts.slice(3).join()).toContain('/other/n');
  });
});

describe('a reply', () => {
  const of = (reply: Parameters<typeof upstreamReply>[0], asTask = false) =>
    upstreamReply(reply, { server: 's', tool: 't', asTask }, asIs);

  test('[S5] an error is a refusal by its code alone, whatever its data say', () => {
    const error = (code: number) => ({ code, message: 'm', data: { code: 'ETIMEDOUT' } });
    expect(of({ kind: 'error', error: error(-32_602) })).toMatchObject({ kind: 'refused', code: -32_602 });
    expect(of({ kind: 'error', error: error(-32_000) })).toMatchObject({ kind: 'in_doubt' });
  });

  test('[S5] what is told later keeps its time', () => {
    const failure = { kind: 'failure', failure: 'told_later', message: 'later', retryAfterMs: 5 } as const;
    expect(of(failure)).toEqual({ kind: 'not_sent', message: 'later', retryAfterMs: 5 });
  });

  test('a task without a usable id is in doubt, and `task` in an answer that was not asked for is no task', () => {
    expect(of({ kind: 'result', result: { resultType: 'task', taskId: 7 } })).toMatchObject({
      kind: 'in_doubt',
    });
    const result = { content: [], task: { taskId: 'x' } };
    expect(of({ kind: 'result', result })).toMatchObject({ kind: 'answer' });
    expect(of({ kind: 'result', result: { task: { taskId: 'x' } } }, true)).toEqual({
      kind: 'task',
      task: { server: 's', tool: 't', taskId: 'x', pollIntervalMs: 1_000, ttlMs: null },
    });
  });
});

describe('the list of tools', () => {
  const page = (tools: number, nextCursor?: string): JsonObject => ({
    tools: Array.from({ length: tools }, (_, at) => ({ name: `t${at}`, inputSchema: { type: 'object' } })),
    ...(nextCursor !== undefined && { nextCursor }),
  });

  test('that never ends is refused, by tools or by pages', async () => {
    await expect(
      readTools(
        () => Promise.resolve(page(500, 'more')),
        () => undefined,
      ),
    ).rejects.toMatchObject({
      code: 'invalid_configuration',
      details: { limit: 'upstreamToolsMax' },
    });
    await expect(
      readTools(
        () => Promise.resolve(page(0, 'more')),
        () => undefined,
      ),
    ).rejects.toMatchObject({
      details: { most: LIMITS.upstreamToolsMax.value },
    });
  });
});

describe('what a server prints', () => {
  test('[S2.10] is logged by lines, without the secrets of its address, cut and so many in a while', () => {
    const clean = cleanerOf({ command: 'x', env: { TOKEN: 'hush-hush' } });
    const lines: { line: string; leftOut: number }[] = [];
    let now = 0;
    const log = createLineLog(
      clean,
      (line, leftOut) => void lines.push({ line, leftOut }),
      () => now,
    );
    log('a hush-');
    log(`hush b\n${'x'.repeat(5_000)}\n`);
    expect(lines[0]).toEqual({ line: 'a [redacted] b', leftOut: 0 });
    expect(lines[1]?.line).toHaveLength(LIMITS.upstreamLogLineCharsMax.value);
    log('y\n'.repeat(200));
    expect(lines).toHaveLength(LIMITS.upstreamLogLinesMax.value);
    now = 10_000;
    log('z\n');
    expect(lines.at(-1)).toEqual({ line: 'z', leftOut: 102 });
  });

  test('[S2.10] headers with and without their scheme, and what an address carries, are secrets', () => {
    const clean = cleanerOf({
      url: 'https://me:pass-word@host/mcp?key=in-the-url',
      headers: { a: 'Bearer tok-en' },
    });
    expect(clean('Bearer tok-en, tok-en, pass-word, in-the-url')).toBe(
      '[redacted], [redacted], [redacted], [redacted]',
    );
  });

  test('[S2.10] what came from the environment is a secret wherever it stands, with its prefix and without', () => {
    const env = { KEY: 'arg-secret', TOKEN: 'env-secret', BEARER: 'head-secret' };
    const stdio = targetOf(
      'a',
      {
        command: 'x',
        args: ['--port=1', { env: 'KEY', prefix: '--key=' }],
        env: { TOKEN: { env: 'TOKEN', prefix: 'pre-' }, PLAIN: 'plain' },
      },
      env,
    );
    const http = targetOf(
      'b',
      { url: 'https://b.example', headers: { 'x-key': { env: 'BEARER', prefix: 'k:' } } },
      env,
    );
    const cleans = [stdio, http].map((target) =>
      cleanerOf(
        target.kind === 'http'
          ? { url: target.url, headers: target.headers, secrets: target.secrets }
          : { command: target.command, args: target.args, env: target.env, secrets: target.secrets },
      ),
    );
    expect(cleans[0]?.('--key=arg-secret arg-secret pre-env-secret env-secret --port=1')).toBe(
      '[redacted] [redacted] [redacted] [redacted] --port=1',
    );
    expect(cleans[1]?.('k:head-secret head-secret https://b.example')).toBe(
      '[redacted] [redacted] https://b.example',
    );
  });
});

describe('a task of 2025-11-25', () => {
  const task = { server: 's', tool: 't', taskId: 'r1', pollIntervalMs: 500, ttlMs: null };
  const statusAfter = (status: string, end: Reply) => {
    const connection: Connection = {
      call: () => Promise.reject(new Error('no calls here')),
      control: async (method, params, _signal) => {
        await params({ era: 'legacy' } as Link);
        return method === 'tasks/get' ? { kind: 'result', result: { taskId: 'r1', status } } : end;
      },
      close: () => Promise.resolve(),
    };
    return createRemoteTasks(connection, asIs).status(task, new AbortController().signal);
  };
  const trouble: Reply = { kind: 'error', error: { code: -32_603, message: 'store is busy' } };

  test('[S8.4] whose result can not be told just now has not failed: it is asked again', async () => {
    await expect(statusAfter('completed', trouble)).rejects.toMatchObject({ code: 'attempt_failed' });
  });

  test('[S8.4] that failed ends with the error that it failed with', async () => {
    expect(await statusAfter('failed', trouble)).toMatchObject({ kind: 'failed', message: 'store is busy' });
  });
});
