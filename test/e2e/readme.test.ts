// The README's first action, taken from the README itself and run as a newcomer would.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { holdfastJson, startHoldfast } from '../support/holdfast-command.ts';
import type { RunningCommand } from '../support/holdfast-command.ts';

const ROOT = join(import.meta.dirname, '../..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');

let cwd: string;
let dev: RunningCommand;

beforeAll(async () => {
  cwd = mkdtempSync(join(tmpdir(), 'holdfast-readme-'));
  const config = /```ts\n(import [\s\S]*?)```/.exec(README)?.[1];
  writeFileSync(join(cwd, 'holdfast.config.ts'), config ?? '');
  mkdirSync(join(cwd, 'node_modules'));
  symlinkSync(ROOT, join(cwd, 'node_modules/holdfast'));
  symlinkSync(join(ROOT, 'node_modules/zod'), join(cwd, 'node_modules/zod'));
  dev = await startHoldfast({ cwd, env: { HOLDFAST_PORT: '0' } }, 'dev');
});
afterAll(async () => {
  await dev.end();
  rmSync(cwd, { recursive: true, force: true });
});

/** The arguments of the `holdfast call` lines, as the README has them. */
const calls = [
  ...README.matchAll(/npx holdfast (call publish_note) --args '(\{.*?\})' --key (\S+) --wait/g),
].map(([, , args, key]) => ['call', 'publish_note', '--args', args ?? '', '--key', key ?? '', '--wait']);

describe('the README’s first action', () => {
  it('takes effect once, is replayed, and refuses another intent under the same key [S1.5] [S2.1]', async () => {
    const notes = (): string[] => readdirSync(cwd).filter((name) => name.endsWith('.note'));
    expect(calls).toHaveLength(3);
    const [first, second, third] = await inOrder(calls);
    expect(first?.value).toMatchObject({ status: 'completed', effect: 'applied', replayed: false });
    expect(second?.value).toMatchObject({ status: 'completed', replayed: true });
    expect(third?.value).toMatchObject({ error: { code: 'idempotency_conflict' } });
    expect(notes()).toHaveLength(1);
    expect(readFileSync(join(cwd, notes()[0] ?? ''), 'utf8')).toBe('hello');
  });

  it('names no command, page or folder that is not there', () => {
    for (const [, path] of README.matchAll(/\]\(([^)#:]+)\)/g))
      expect(existsSync(join(ROOT, path ?? '')), path).toBe(true);
  });
});

async function inOrder(commands: string[][]) {
  const answers = [];
  for (const command of commands)
    answers.push(await holdfastJson<Record<string, unknown>>({ cwd }, ...command));
  return answers;
}
