import { describe, expect, test } from 'vitest';
import type { Link } from '../../../src/mcp-client/link.ts';
import type { Reply } from '../../../src/mcp-client/reply.ts';
import type { JsonObject } from '../../../src/task/json.ts';
import { callTool } from '../../../src/upstream/connection/call-tool.ts';

const ASKS: Reply = {
  kind: 'result',
  result: {
    resultType: 'input_required',
    inputRequests: { form: { method: 'elicitation/create' } },
    requestState: 's',
  },
};
const REFUSED: Reply = { kind: 'error', error: { code: -32_602, message: 'no such form' } };
const NOT_SENT: Reply = { kind: 'failure', failure: 'not_sent', message: 'no connection' };

async function calling(replies: Reply[], isTask: () => Promise<boolean> = () => Promise.resolve(false)) {
  const sent: JsonObject[] = [];
  const line = {
    async call(params: (link: Link) => JsonObject | Promise<JsonObject>) {
      sent.push(await params({} as Link));
      return replies.shift() as Reply;
    },
  };
  const parts = { identity: 'bank', clean: (text: string) => text, isTask };
  const reply = await callTool(line, parts, { tool: 'pay', args: {}, signal: new AbortController().signal });
  return { reply, sent };
}

describe('a form in the midst of a call', () => {
  test('[M8.3] is dismissed, and the answer after it is that of the call', async () => {
    const { reply, sent } = await calling([ASKS, { kind: 'result', result: { content: [] } }]);
    expect(reply).toMatchObject({ kind: 'answer' });
    expect(sent[1]).toMatchObject({ inputResponses: { form: { action: 'cancel' } }, requestState: 's' });
  });

  test('[S5] refused at once, nothing was done', async () => {
    expect((await calling([REFUSED])).reply).toMatchObject({ kind: 'refused', code: -32_602 });
    expect((await calling([NOT_SENT])).reply).toMatchObject({ kind: 'not_sent' });
  });

  test.each([
    ['an error', REFUSED],
    ['not sent', NOT_SENT],
    ['refused', { kind: 'failure', failure: 'refused', message: '401' }],
    ['lost', { kind: 'failure', failure: 'lost', message: 'reset' }],
    ['cancelled', { kind: 'cancelled' }],
    ['asked for ever', ASKS],
  ] as [string, Reply][])(
    '[S5] once the server has begun, the call is in doubt: %s',
    async (_name, second) => {
      expect((await calling([ASKS, second, ASKS, ASKS])).reply).toMatchObject({ kind: 'in_doubt' });
    },
  );

  test('[S5] so it is where the next message could not be made', async () => {
    let asked = 0;
    const isTask = () => ((asked += 1) === 1 ? Promise.resolve(false) : Promise.reject(new Error('no list')));
    expect((await calling([ASKS], isTask)).reply).toMatchObject({ kind: 'in_doubt' });
    expect((await calling([], isTask)).reply).toMatchObject({ kind: 'not_sent' });
  });
});
