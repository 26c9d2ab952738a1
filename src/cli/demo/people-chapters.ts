/** The demo's chapters about people: one approves, one edits, one cancels what is under way. The chat's own books judge. */
import { result } from './chapter.ts';
import type { Chapter, Performance } from './chapter.ts';
import { callTool } from './tool-call.ts';
import { until } from './until.ts';

const EDITOR = { tenant: 'local', subject: 'bob', roles: ['editor'] };

const posts = async ({ stage }: Performance): Promise<number> => (await stage.chat.books())['posts'] ?? -1;

export const somebodyApproves: Chapter = async (performance) => {
  const { stage, say } = performance;
  const message = { channel: 'incidents', text: 'Checkout is slow.', idempotencyKey: 'incident-1' };
  say(
    'an agent posts to #incidents, which takes an editor’s approval; it is told who decides, and waits for nobody',
  );
  const asked = await callTool(stage.mcp, 'post_message', message);
  const before = await posts(performance);
  say(`bob, an editor, approves it, as with: holdfast task approve ${asked.task.taskId}`);
  await stage.decisions.decide(asked.task.taskId ?? '', EDITOR, { kind: 'approve' });
  const answer = await callTool(stage.mcp, 'post_message', message);
  const effects = (await posts(performance)) - before;
  return result(
    'a person approves',
    'nothing before, one effect after',
    answer,
    effects,
    asked.task.status === 'awaiting_approval' && answer.task.status === 'completed' && effects === 1,
  );
};

export const somebodyEdits: Chapter = async (performance) => {
  const { stage, say } = performance;
  const message = { channel: 'incidents', text: 'EVERYTHING IS DOWN', idempotencyKey: 'incident-2' };
  const asked = await callTool(stage.mcp, 'post_message', message);
  const before = await posts(performance);
  const calmer = { channel: 'incidents', text: 'Checkout is down, we are on it.' };
  say(`the next one bob rewrites, as with: holdfast task edit … --args '${JSON.stringify(calmer)}'`);
  await stage.decisions.decide(asked.task.taskId ?? '', EDITOR, { kind: 'edit', arguments: calmer });
  const answer = await callTool(stage.mcp, 'post_message', message);
  const again = await callTool(stage.mcp, 'post_message', message);
  say('the agent makes its own call again: it is answered by what was done');
  const effects = (await posts(performance)) - before;
  const isTold = answer.task.editedFrom?.by === 'bob' && again.task.editedFrom?.by === 'bob';
  return result(
    'a person edits',
    'the edited call, once; the agent told',
    answer,
    effects,
    isTold && answer.task.status === 'completed' && effects === 1,
  );
};

/** The trace of a cancel: acknowledged, working, observed, terminal. */
export const cancelledUnderWay: Chapter = async (performance) => {
  const { stage, say } = performance;
  const before = await posts(performance);
  await stage.chat.behave('hold', 1);
  const message = { channel: 'team', text: 'Deployed.', idempotencyKey: 'deploy-1' };
  const calling = callTool(stage.mcp, 'post_message', message);
  await until('the message is posted', async () => (await posts(performance)) > before);
  const [row] = await stage.ledger.list({ tenant: 'local', action: 'post_message', limit: 1 });
  const taskId = row?.taskId ?? '';
  say('a message is posted but not answered yet, and the agent cancels: requested, not done');
  const acknowledged = await callTool(stage.mcp, 'task_cancel', { taskId });
  say(`  acknowledged  ${acknowledged.text}`);
  const working = await callTool(stage.mcp, 'task_get', { taskId });
  say(`  working       ${working.task.status}, the message stands`);
  await stage.chat.release();
  const answer = await calling;
  const observed = (await stage.ledger.audit({ taskId })).find(({ type }) => type.includes('rollback'));
  say(`  observed      once the attempt had ended: ${observed?.type ?? 'never'}`);
  const { posts: made = 0, deletes = 0 } = await stage.chat.books();
  const standing = made - before - deletes;
  say(`  terminal      ${answer.task.status}, effect ${answer.task.effect}`);
  return result(
    'cancelled under way',
    'the effect finished, then was undone',
    answer,
    standing,
    working.task.status === 'running' &&
      observed !== undefined &&
      answer.task.status === 'cancelled' &&
      answer.task.effect === 'rolled_back' &&
      standing === 0,
  );
};
