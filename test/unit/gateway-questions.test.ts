/** A call that leaves out what its contract asks a person for: the rounds of it, before anything starts. */
import { describe, expect, it } from 'vitest';
import * as z from 'zod';
import { defineAction } from '../../src/contract/define-action.ts';
import { callAction } from '../../src/gateway/call-tool.ts';
import type { CallOutcome } from '../../src/gateway/call-tool.ts';
import type { Caller } from '../../src/gateway/caller.ts';
import { inRequest } from '../../src/gateway/open-request.ts';
import { toolOf } from '../../src/gateway/tool-spec.ts';
import { drivenClient } from '../support/driven-gateway.ts';
import { callerWith, callParts } from '../support/past-the-sdk.ts';

const letter = defineAction({
  name: 'letter',
  version: 1,
  description: 'Sends a letter.',
  input: z.object({ to: z.string(), speed: z.string().default('slow'), text: z.string() }),
  output: z.json(),
  effect: 'conditional',
  rollback: { kind: 'outOfBand' },
  verify: { none: 'it is in the post' },
  ask: [
    { id: 'recipient', fields: ['to', 'speed'], message: 'Who gets it?' },
    { id: 'content', fields: ['text'], message: 'What does it say?' },
  ],
});

function setUp() {
  const client = drivenClient();
  client.immediate.set('letter', (args) => ({
    status: 'completed',
    effect: 'applied',
    cause: 'committed',
    result: args,
  }));
  const parts = callParts({ client });
  const caller = callerWith({ canElicit: true });
  const call = (also: Partial<Caller> = {}, args: object = {}, spec = toolOf(letter)) =>
    inRequest(parts, { ...caller, ...also }, (request) => callAction(parts, spec, args, request));
  return { client, call };
}

const questionOf = (outcome: CallOutcome) => {
  if (outcome.kind !== 'question') throw new Error(`a question was expected, not ${outcome.kind}`);
  return outcome;
};
const accept = (content: object) => ({ action: 'accept', content });

describe('a call that leaves out what its contract asks for', () => {
  it('is asked one form after another, starts nothing meanwhile, and then starts with all answers [M3.1] [M2.3]', async () => {
    const { client, call } = setUp();
    const first = questionOf(await call());
    expect(first.question).toMatchObject({ id: 'recipient', message: 'Who gets it?', required: ['to'] });
    const to = {
      requestState: first.state,
      inputResponses: { recipient: accept({ to: 'ann', text: 'no', pin: 1 }) },
    };
    const second = questionOf(await call(to));
    expect(second.question).toMatchObject({ id: 'content', fields: { text: { type: 'string' } } });
    expect(client.starts).toEqual([]);
    const text = { requestState: second.state, inputResponses: { content: accept({ text: 'hello' }) } };
    expect(await call(text)).toMatchObject({
      kind: 'result',
      result: { structuredContent: { to: 'ann', text: 'hello' } },
    });
    expect(client.starts).toMatchObject([{ action: 'letter', args: { to: 'ann', text: 'hello' } }]);
    expect(Object.keys(client.starts[0]?.args ?? {})).toEqual(['to', 'text']);
  });

  it('is asked for the missing fields alone, and for nothing when none is missing [M3.1]', async () => {
    const { client, call } = setUp();
    const asked = questionOf(await call({}, { to: 'ann', text: 'hello' }));
    expect(Object.keys(asked.question.fields)).toEqual(['speed']);
    expect(asked.question.required).toEqual([]);
    await call({}, { to: 'ann', speed: 'fast', text: 'hello' });
    expect(client.starts).toHaveLength(1);
  });

  it('is asked again where the answer is to something else, or none, and not where a form came back half empty [M2.3]', async () => {
    const { client, call } = setUp();
    for (const inputResponses of [{ other: accept({ to: 'ann' }) }, { recipient: 7 }, null])
      expect(questionOf(await call({ inputResponses })).question.id).toBe('recipient');
    const inputResponses = { recipient: accept({}), content: accept({ text: 'hello' }) };
    await call({ inputResponses });
    expect(client.starts).toMatchObject([{ args: { text: 'hello' } }]);
  });

  it.each(['decline', 'cancel'])(
    'ends with words when the person answers %s, and starts nothing [M3.1]',
    async (action) => {
      const { client, call } = setUp();
      await expect(call({ inputResponses: { recipient: { action } } })).rejects.toMatchObject({
        code: 'input_declined',
        details: { question: 'recipient', action },
      });
      expect(client.starts).toEqual([]);
    },
  );

  it('of a client that takes no forms goes on as it is, for validation to refuse [M3.1]', async () => {
    const { client, call } = setUp();
    await call({ canElicit: false }, { to: 'ann' });
    expect(client.starts).toMatchObject([{ args: { to: 'ann' } }]);
  });

  it('carries its state to no other call [M3.1]', async () => {
    const { call } = setUp();
    const { state } = questionOf(await call());
    await expect(call({ requestState: state }, { to: 'eve' })).rejects.toMatchObject({ code: -32602 });
  });
});

describe('a tool that needs the Tasks extension', () => {
  const spec = { ...toolOf(letter), needsTasks: true };
  it('refuses a client that did not declare it with -32021 before anybody is asked anything [M2.1]', async () => {
    const { client, call } = setUp();
    await expect(call({}, {}, spec)).rejects.toMatchObject({ code: -32021 });
    expect(client.starts).toEqual([]);
    expect(questionOf(await call({ declaresTasks: true }, {}, spec)).question.id).toBe('recipient');
  });
});
