/** The demo's chapter about a server that somebody else wrote: what stands in its folder is the judge. */
import { existsSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import type { Chapter, ChapterResult } from './chapter.ts';
import { callTool } from './tool-call.ts';
import { until } from './until.ts';

const OPERATOR = { tenant: 'local', subject: 'olga', roles: ['operator'] };
const TOOL = 'files__write_file';
const SERVER = '@modelcontextprotocol/server-filesystem';
const EXPECTED = 'approved, read back; the cancelled one undone';

/** `stage.files`: the folder `root` is the server's; while `held` is there, its answers wait. */
export const somebodyElsesServer: Chapter = async ({ stage, say }) => {
  const chapter = 'a server that others wrote';
  const { tools } = await stage.mcp.listTools();
  if (!tools.some(({ name }) => name === TOOL)) {
    const isThere = isInstalled();
    const seen = isThere ? `installed, and ${TOOL} is not offered` : 'not installed';
    say(isThere ? seen : `left out: npm install ${SERVER}`);
    return { chapter, expected: EXPECTED, seen, effects: 0, isAsExpected: !isThere };
  }
  const path = join(stage.files, 'root', 'service.env');
  const held = join(stage.files, 'held');
  const content = async (): Promise<string | null> =>
    existsSync(path) ? (await readFile(path, 'utf8')).trim() : null;
  const write = (text: string, key: string) =>
    callTool(stage.mcp, TOOL, { path, content: `${text}\n` }, { meta: { 'holdfast/idempotencyKey': key } });

  say(
    'the filesystem MCP server as npm has it, behind Holdfast by a configuration; an agent writes service.env',
  );
  const asked = await write('PORT=80', 'env-1');
  const before = await content();
  say(`  ${asked.task.status}, the file: ${before ?? 'not there'}; olga, an operator, approves`);
  await stage.decisions.decide(asked.task.taskId ?? '', OPERATOR, { kind: 'approve' });
  const first = await write('PORT=80', 'env-1');
  say(`  ${first.task.status}, read back by read_text_file; the file: ${await content()}`);

  const next = await write('PORT=0', 'env-2');
  await writeFile(held, '');
  await stage.decisions.decide(next.task.taskId ?? '', OPERATOR, { kind: 'approve' });
  await until('the file is overwritten', async () => (await content()) === 'PORT=0');
  say(
    'the next one is approved too; the file is PORT=0, the server has not answered yet, and the agent cancels',
  );
  await callTool(stage.mcp, 'task_cancel', { taskId: next.task.taskId ?? '' });
  await rm(held);
  const undone = await callTool(stage.mcp, 'task_wait', { taskId: next.task.taskId ?? '' });
  const standing = await content();
  say(`  ${undone.task.status}, effect ${undone.task.effect}; the file: ${standing}`);
  const isApproved = asked.task.status === 'awaiting_approval' && before === null;
  const isRight = first.task.status === 'completed' && undone.task.status === 'cancelled';
  return {
    chapter,
    expected: EXPECTED,
    seen: `${first.task.status}; ${undone.task.status}, ${undone.task.effect}`,
    effects: standing === null ? 0 : 1,
    isAsExpected: isApproved && isRight && undone.task.effect === 'rolled_back' && standing === 'PORT=80',
  } satisfies ChapterResult;
};

function isInstalled(): boolean {
  try {
    return createRequire(import.meta.url).resolve(`${SERVER}/dist/index.js`) !== '';
  } catch {
    return false;
  }
}
