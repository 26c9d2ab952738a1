/** The fault target is the oracle of the crash tests, so it is tested itself, by plain fetch. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startFaultTarget } from '../support/fault-target.ts';
import type { FaultTarget, Mode } from '../support/fault-target.ts';

let target: FaultTarget;
beforeAll(async () => {
  target = await startFaultTarget();
});
beforeEach(() => target.reset());
afterAll(() => target.stop());

const send = (endpoint: 'conditional' | 'unsafe', key: string, value = 'v', signal?: AbortSignal) =>
  fetch(`${target.url}/${endpoint}/put`, {
    method: 'POST',
    headers: { 'idempotency-key': key, 'x-fence': '1.1.1' },
    body: JSON.stringify({ value }),
    ...(signal && { signal }),
  });
const get = (path: string) => fetch(`${target.url}${path}`);

describe('fault target', () => {
  test('conditional applies once per key, unsafe as often as it is asked', async () => {
    const first = await (await send('conditional', 'a')).json();
    expect(await (await send('conditional', 'a')).json()).toEqual(first);
    await send('unsafe', 'b');
    await send('unsafe', 'b');
    expect([await target.count('a'), await target.count('b'), await target.total()]).toEqual([1, 2, 3]);
    expect(await target.requests({ operationId: 'a' })).toEqual(
      Array(2).fill({ endpoint: 'apply', action: 'put', operationId: 'a', fence: '1.1.1', mode: 'ok' }),
    );
  });

  test.each<[Mode, number]>([
    [{ kind: 'dropBefore' }, 0],
    [{ kind: 'applyThenDrop' }, 1],
    [{ kind: 'applyThenTruncate' }, 1],
  ])(
    'a caller can not read an answer under %o, and the counter tells what happened',
    async (mode, effects) => {
      await target.setMode(mode, { times: 1 });
      await expect(send('unsafe', 'a').then((answer) => answer.json())).rejects.toThrow();
      expect(await target.count('a')).toBe(effects);
      expect((await send('unsafe', 'a')).status).toBe(200);
    },
  );

  test.each<[Mode, number, number]>([
    [{ kind: 'refuse', status: 429, retryAfterSeconds: 7 }, 429, 0],
    [{ kind: 'refuse', status: 503, retryAfterSeconds: 7 }, 503, 0],
    [{ kind: 'refuse', status: 422 }, 422, 0],
    [{ kind: 'proxyError', status: 502, applies: false }, 502, 0],
    [{ kind: 'proxyError', status: 504, applies: true }, 504, 1],
    [{ kind: 'lie' }, 200, 0],
    [{ kind: 'applyOther', value: 'other' }, 200, 1],
  ])('%o is answered %i after %i effects', async (mode, status, effects) => {
    await target.setMode(mode);
    const answer = await send('conditional', 'a');
    expect(answer.status).toBe(status);
    expect(answer.headers.get('retry-after')).toBe('retryAfterSeconds' in mode ? '7' : null);
    expect(await target.count('a')).toBe(effects);
  });

  test('a hanging answer has applied, and ends with the caller’s patience alone', async () => {
    await target.setMode({ kind: 'applyThenHang' });
    const patience = new AbortController();
    const answer = send('conditional', 'a', 'v', patience.signal);
    await expect.poll(() => target.count('a')).toBe(1);
    patience.abort();
    await expect(answer).rejects.toThrow('aborted');
  });

  test('a dropped request applies when its gate is released', async () => {
    await target.setMode({ kind: 'dropThenApply', gate: 'late' });
    await expect(send('conditional', 'a')).rejects.toThrow();
    await target.reached('late');
    expect(await target.count('a')).toBe(0);
    await target.release('late');
    await expect.poll(() => target.count('a')).toBe(1);
  });

  test.each([
    ['afterApply', 1],
    ['beforeApply', 0],
  ] as const)('a reply held %s leaves the counter at %i until the gate opens', async (when, effects) => {
    await target.setMode({ kind: 'hold', gate: 'g', when });
    const answer = send('conditional', 'a');
    await target.reached('g');
    expect(await target.count('a')).toBe(effects);
    await target.release('g');
    expect((await answer).status).toBe(200);
    expect(await target.count('a')).toBe(1);
  });

  test('an unseen effect shows itself after so many looks, or when its gate is released', async () => {
    await target.setMode({ kind: 'applyUnseen', looks: 2 }, { operationId: 'a' });
    await target.setMode({ kind: 'applyUnseen', gate: 'seen' }, { operationId: 'b' });
    const { resourceId } = (await (await send('conditional', 'a')).json()) as { resourceId: string };
    const looks = [`/operations/a`, `/resources/${resourceId}`, `/operations/a`].map(
      (path) => () => get(path),
    );
    const statuses: number[] = [];
    for (const look of looks) statuses.push((await look()).status);
    expect(statuses).toEqual([404, 404, 200]);
    await send('conditional', 'b');
    expect((await get('/operations/b')).status).toBe(404);
    await target.release('seen');
    expect((await get('/operations/b')).status).toBe(200);
  });

  test('undo is idempotent by its own key and fails as it is told', async () => {
    const { resourceId } = (await (await send('conditional', 'a')).json()) as { resourceId: string };
    const undo = (key: string) =>
      fetch(`${target.url}/resources/${resourceId}/undo`, {
        method: 'POST',
        headers: { 'idempotency-key': key },
      });
    await target.setMode({ kind: 'applyThenDrop' }, { endpoint: 'undo', times: 1 });
    await expect(undo('u')).rejects.toThrow();
    expect([(await undo('u')).status, (await undo('other')).status]).toEqual([200, 409]);
    expect([await target.undone('a'), await target.count('a')]).toEqual([1, 1]);
    expect(await (await get('/operations/a')).json()).toMatchObject({ undone: true });
  });

  test('with a file, its book outlives its own death', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'fault-target-'));
    const file = join(folder, 'book.jsonl');
    const first = await startFaultTarget({ file });
    const port = Number(new URL(first.url).port);
    const init = { method: 'POST', headers: { 'idempotency-key': 'a' }, body: '{"value":"v"}' };
    await fetch(`${first.url}/conditional/put`, init);
    await first.stop();
    const second = await startFaultTarget({ file, port });
    await fetch(`${second.url}/conditional/put`, init);
    expect(await second.count('a')).toBe(1);
    await second.stop();
    rmSync(folder, { recursive: true });
  });
});
