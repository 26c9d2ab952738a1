/**
 * What the official conformance suite calls, as actions of Holdfast: whatever it is answered comes out of contracts,
 * handlers and tasks, as any user's would. Names and arguments are the suite's.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';
import { ActionFailure, defineAction, implementAction } from '../../src/index.ts';
import type { Question } from '../../src/index.ts';

const output = z.string();
const NOTHING_TO_READ = { none: 'there is nothing to read back' };
const none = z.object({});

/** Short enough to run inside the first workflow task: the suite waits half a second for some. */
const quick = { version: 1, output, effect: 'safe', deadlines: { attempt: '1s' } } as const;

/** Answers at once. */
const reading = (name: string, text: string) =>
  implementAction(defineAction({ ...quick, name, description: name, input: none }), {
    execute: async () => text,
  });

/** Answers with what a person filled in. */
const asking = <Input extends z.ZodObject>(name: string, input: Input, ...ask: Question[]) =>
  implementAction(defineAction({ ...quick, name, description: name, input, ask }), {
    execute: async (filledIn) => `state-ok: ${JSON.stringify(filledIn)}`,
  });

const task = {
  version: 1,
  output,
  effect: 'conditional',
  rollback: { kind: 'outOfBand' },
  verify: NOTHING_TO_READ,
  deadlines: { attempt: '2m' },
  inline: false,
} as const;

const greet = implementAction(
  defineAction({
    name: 'greet',
    version: 1,
    description: 'Greets.',
    input: z.object({ name: z.string() }),
    output,
    effect: 'safe',
  }),
  { execute: async ({ name }) => `Hello, ${name}!` },
);

const slowCompute = implementAction(
  defineAction({
    ...task,
    name: 'slow_compute',
    description: 'Takes its time; a cancel stops it.',
    input: z.object({ seconds: z.number().min(0), label: z.string().optional() }),
    cancelAttempt: 'abort',
  }),
  {
    async execute({ seconds, label = '' }, { signal }) {
      try {
        await delay(seconds * 1_000, undefined, { signal });
      } catch {
        throw ActionFailure.notSent('stopped before anything came of it');
      }
      return `computed ${label}`;
    },
  },
);

/** Refused with -32021 by name alone: it is never run. */
const testMissingCapability = implementAction(
  defineAction({
    ...task,
    name: 'test_missing_capability',
    description: 'Needs a capability.',
    input: none,
    tasks: 'required',
  }),
  { execute: async (_input, _context) => 'done' },
);

const failingJob = implementAction(
  defineAction({
    ...task,
    name: 'failing_job',
    description: 'Fails after a second.',
    input: none,
    tasks: 'required',
  }),
  {
    async execute(_input, _context) {
      await delay(1_000);
      throw ActionFailure.permanent('the job can not be done');
    },
  },
);

/** Waits for somebody who never comes: the engine's operator closes it (gateway.ts). */
const protocolErrorJob = implementAction(
  defineAction({
    ...task,
    name: 'protocol_error_job',
    description: 'Is closed in the engine before it begins.',
    input: none,
    approval: () => ({ roles: ['nobody'] }),
  }),
  { execute: async (_input, _context) => 'never' },
);

/** Over the connection that asked, by who asked. */
export const ASKED_HERE = { requesterMayDecide: true, mayAnswerOverMcp: true } as const;

const confirmDelete = implementAction(
  defineAction({
    ...task,
    name: 'confirm_delete',
    description: 'Deletes a file, once a person said so.',
    input: z.object({ filename: z.string() }),
    approval: () => ASKED_HERE,
  }),
  { execute: async ({ filename }, _context) => `deleted ${filename}` },
);

const testToolWithTask = implementAction(
  defineAction({
    ...task,
    name: 'test_tool_with_task',
    description: 'Asks for a name first, then takes its time.',
    input: z.object({ name: z.string() }),
    tasks: 'required',
    ask: [{ id: 'user_name', fields: ['name'], message: 'What is your name?' }],
  }),
  {
    async execute({ name }, _context) {
      await delay(1_000);
      return `done for ${name}`;
    },
  },
);

/** Reports what becomes of it: two attempts that reach nothing, then one that does. */
const testToolWithProgress = implementAction(
  defineAction({
    ...task,
    name: 'test_tool_with_progress',
    description: 'Succeeds at the third attempt.',
    input: none,
    retry: { maximumRetries: 3, initialInterval: '200ms', maximumInterval: '200ms' },
  }),
  {
    async execute(_input, { attempt }) {
      await delay(200);
      if (attempt < 3) throw ActionFailure.notSent('not reached yet');
      return 'done at the third attempt';
    },
  },
);

const testErrorHandling = implementAction(
  defineAction({
    name: 'test_error_handling',
    version: 1,
    description: 'Always fails.',
    input: none,
    output,
    effect: 'safe',
  }),
  {
    async execute() {
      throw ActionFailure.permanent('This tool intentionally returns an error for testing');
    },
  },
);

const testRegion = implementAction(
  defineAction({
    name: 'test_region',
    version: 1,
    description: 'Takes an argument that proxies may route by.',
    input: z.object({ region: z.string().meta({ 'x-mcp-header': 'Region' }) }),
    output,
    effect: 'safe',
  }),
  { execute: async ({ region }) => region },
);

/** Its published schema is put in its place by gateway.ts, as an upstream tool's would be. */
const jsonSchemaTool = implementAction(
  defineAction({
    name: 'json_schema_2020_12_tool',
    version: 1,
    description: 'Tool with JSON Schema 2020-12 features.',
    input: z.looseObject({}),
    output,
    effect: 'safe',
  }),
  { execute: async () => 'taken' },
);

const choice = (...options: [value: string, title: string][]) =>
  z.union(options.map(([value, title]) => z.literal(value).meta({ title })));

const name = z.object({ name: z.string() });
const whoAreYou: Question = { id: 'user_name', fields: ['name'], message: 'What is your name?' };

const asked = [
  asking('test_input_required_result_elicitation', name, whoAreYou),
  asking('test_input_required_result_request_state', z.object({ ok: z.boolean() }), {
    id: 'confirm',
    fields: ['ok'],
    message: 'Please confirm',
  }),
  asking('test_input_required_result_tampered_state', z.object({ ok: z.boolean() }), {
    id: 'confirm',
    fields: ['ok'],
  }),
  asking(
    'test_input_required_result_multi_round',
    z.object({ name: z.string(), color: z.string() }),
    { id: 'step1', fields: ['name'], message: 'Step 1: What is your name?' },
    { id: 'step2', fields: ['color'], message: 'Step 2: What is your favorite color?' },
  ),
  asking('test_streaming_elicitation', name, whoAreYou),
  asking('test_elicitation', z.object({ message: z.string(), username: z.string(), email: z.email() }), {
    id: 'user',
    fields: ['username', 'email'],
    message: 'Please provide your information',
  }),
  asking(
    'test_elicitation_sep1034_defaults',
    z.object({
      name: z.string().default('John Doe'),
      age: z.int().default(30),
      score: z.number().default(95.5),
      status: z.enum(['active', 'inactive', 'pending']).default('active'),
      verified: z.boolean().default(true),
    }),
    { id: 'profile', fields: ['name', 'age', 'score', 'status', 'verified'] },
  ),
  asking(
    'test_elicitation_sep1330_enums',
    z.object({
      untitledSingle: z.enum(['option1', 'option2', 'option3']),
      titledSingle: choice(
        ['value1', 'First Option'],
        ['value2', 'Second Option'],
        ['value3', 'Third Option'],
      ),
      legacyEnum: z
        .enum(['opt1', 'opt2', 'opt3'])
        .meta({ enumNames: ['Option One', 'Option Two', 'Option Three'] }),
      untitledMulti: z.array(z.enum(['option1', 'option2', 'option3'])),
      titledMulti: z.array(
        choice(['value1', 'First Choice'], ['value2', 'Second Choice'], ['value3', 'Third Choice']),
      ),
    }),
    {
      id: 'choices',
      fields: ['untitledSingle', 'titledSingle', 'legacyEnum', 'untitledMulti', 'titledMulti'],
    },
  ),
];

export const conformanceActions = [
  greet,
  slowCompute,
  failingJob,
  testMissingCapability,
  protocolErrorJob,
  confirmDelete,
  testToolWithTask,
  testToolWithProgress,
  testErrorHandling,
  testRegion,
  jsonSchemaTool,
  reading('test_simple_text', 'This is a simple text response for testing.'),
  reading('test_logging_tool', 'nothing is logged to clients'),
  ...asked,
];
