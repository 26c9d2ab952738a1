// `holdfast upstream check` as a command, against a real server process; nothing else runs, and no ledger is made.
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { holdfast, holdfastJson } from '../support/holdfast-command.ts';

const CONFIG = fileURLToPath(new URL('../support/counter-upstream.config.ts', import.meta.url));
const SERVER = fileURLToPath(new URL('../support/counter-upstream.ts', import.meta.url));

interface ServerJson {
  server: string;
  wrong: string[];
  tools: Record<string, unknown>[];
}

let cwd: string;
const place = () => ({ cwd, env: { HOLDFAST_TEST_COUNTER: join(cwd, 'counter.json') } });
const check = (...args: string[]) => holdfast(place(), 'upstream', 'check', ...args);

beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-upstream-check-'));
});
afterAll(() => rmSync(cwd, { recursive: true, force: true }));

test('[M8.1] a server whose tools are in order ends with 0, warnings or not, and leaves nothing behind', async () => {
  const { code, stdout } = await check('counter', '--config', CONFIG);
  expect(stdout).toMatch(/^counter__add +unsafe +- +count +count +add +args\.amount > 100$/m);
  expect(stdout).toContain('warning  counter__poke  verify: nothing reads the effect back');
  expect(code).toBe(0);
  const { value } = await holdfastJson<ServerJson[]>(
    place(),
    'upstream',
    'check',
    'counter',
    '--config',
    CONFIG,
  );
  expect(value).toMatchObject([{ server: 'counter', wrong: [] }]);
  expect(value[0]?.tools).toContainEqual(
    expect.objectContaining({
      tool: 'lie',
      name: 'add_lying',
      verifiedBy: 'count',
      undoneBy: 'add',
      wrong: [],
    }),
  );
  expect(readdirSync(cwd)).toEqual([]);
});

test('[M1.1] a server that is not there, and a tool that can not be offered, end with 1 and say why', async () => {
  const away = await check('--config', CONFIG);
  expect(away.stdout).toMatch(
    /^nobody\nwrong +The upstream nobody does not answer: .*the command was not found$/m,
  );
  expect(away.code).toBe(1);
  const counter = {
    command: process.execPath,
    args: ['--experimental-strip-types', SERVER],
    safe: ['count'],
    tools: { poke: { lookup: { tool: 'count', args: { key: 'args.kay' }, applied: 'true' } }, pok: {} },
  };
  const file = join(cwd, 'wrong.config.mjs');
  writeFileSync(file, `export default ${JSON.stringify({ actions: [], upstreams: { counter } })};\n`);
  const wrong = await check('--config', file);
  expect(wrong.stdout).toMatch(/^wrong +counter__poke +lookup\.args\.key \(at 0\): args has no kay/m);
  expect(wrong.stdout).toMatch(/^wrong +counter: pok: .*did you mean poke/m);
  expect(wrong.code).toBe(1);
  expect((await check('nothing', '--config', file)).code).toBe(2);
});

test('[M1.1] doctor names a server that does not answer, and holds nothing wrong for it', async () => {
  const { value } = await holdfastJson<{ check: string; verdict: string; found: string }[]>(
    place(),
    ...['doctor', '--config', CONFIG],
  );
  expect(value.filter(({ check: of }) => of.startsWith('upstream'))).toMatchObject([
    { check: 'upstream counter', verdict: 'ok', found: '6 tools' },
    {
      check: 'upstream nobody',
      verdict: 'warning',
      found: expect.stringContaining('does not answer') as string,
    },
  ]);
});
