/** The shape of an action's definition, with a message for each bound that says what to write instead. */
import { z } from 'zod';
import type { Defect } from './define-action.ts';
import { parseDuration } from './duration.ts';
import { LIMITS } from './limits.ts';
import { pointerOf } from './pointer.ts';

const durationIn = (minimumMs: number, limit: { value: number; what: string }) =>
  z
    .unknown()
    .transform((value, context) => {
      const parsed = parseDuration(value);
      if (parsed !== null && parsed >= minimumMs && parsed <= limit.value) return parsed;
      context.addIssue({
        code: 'custom',
        message: `write a duration of ${minimumMs} to ${limit.value} ms, such as '250ms', '10s', '5m', '24h', '7d' or a whole number of milliseconds`,
      });
      return z.NEVER;
    })
    .optional();

const oneOf = <const Values extends readonly string[]>(values: Values) =>
  z.enum(values, { error: `write one of ${values.map((value) => `'${value}'`).join(', ')}` });

const flag = z.boolean({ error: 'write true or false' });

const wholeNumber = (minimum: number, maximum: number) => {
  const error = `write a whole number from ${minimum} to ${maximum}`;
  return z.int({ error }).min(minimum, { error }).max(maximum, { error });
};

const text = (limit: number, what: string) =>
  z
    .string({ error: `write ${what}` })
    .trim()
    .min(1, { error: `write ${what}` })
    .max(limit, { error: `at most ${limit} characters` });

/** By structure, not `instanceof`: the user's zod may be another copy of the same package. */
const isSchema = (value: unknown): value is z.ZodType =>
  typeof value === 'object' && value !== null && '_zod' in value && 'safeParse' in value;

const schema = z.custom<z.ZodType>(isSchema, { error: 'write a zod 4 schema' });
const objectSchema = z.custom<z.ZodObject>((value) => isSchema(value) && value._zod.def.type === 'object', {
  error: 'write a z.object({…}); unions go into its fields',
});

const handler = (what: string) =>
  z.custom<(input: never) => unknown>((value) => typeof value === 'function', { error: `write ${what}` });

const {
  attemptDeadlineMsMax,
  verifyDeadlineMsMax,
  runDeadlineMsMax,
  settleMsMax,
  heartbeatMsMax,
  slaMsMax,
  retryIntervalMsMax,
  decisionAsksMax,
  decisionIntervalMsMax,
  leaseMsMax,
} = LIMITS;
const NAME = new RegExp(`^[A-Za-z0-9_-]{1,${LIMITS.toolNameLengthMax.value}}$`);

export const definitionSchema = z.strictObject({
  name: z.string({ error: 'write the tool’s name' }).regex(NAME, {
    error: `1 to ${LIMITS.toolNameLengthMax.value} characters of A–Z, a–z, 0–9, _ and -`,
  }),
  version: z.int({ error: 'write a whole number from 1' }).min(1, { error: 'write a whole number from 1' }),
  description: text(
    LIMITS.descriptionLengthMax.value,
    'what the action does, for the people and models who choose it',
  ),
  input: objectSchema,
  output: schema,
  effect: oneOf(['safe', 'conditional', 'unsafe']),
  rollback: z
    .strictObject({
      kind: oneOf(['inBand', 'compensate', 'outOfBand', 'none']),
      reason: text(1_000, 'why').optional(),
    })
    .transform(({ kind, reason }) => (reason === undefined ? { kind } : { kind, reason }))
    .optional(),
  approval: handler('a function of the input that answers false or {roles: […]}').optional(),
  deadlines: z
    .strictObject({
      attempt: durationIn(1, attemptDeadlineMsMax),
      verify: durationIn(0, verifyDeadlineMsMax),
      run: durationIn(1, runDeadlineMsMax),
      settle: durationIn(0, settleMsMax),
      heartbeat: durationIn(500, heartbeatMsMax),
      tool: durationIn(1, runDeadlineMsMax),
      sla: durationIn(1, slaMsMax),
    })
    .prefault({}),
  retry: z
    .strictObject({
      maximumRetries: wholeNumber(0, LIMITS.retriesMax.value).default(5),
      initialInterval: durationIn(1, retryIntervalMsMax),
      maximumInterval: durationIn(1, retryIntervalMsMax),
    })
    .prefault({})
    .transform(
      ({ maximumRetries, initialInterval = 1_000, maximumInterval = Math.max(60_000, initialInterval) }) => ({
        maximumRetries,
        initialIntervalMs: initialInterval,
        maximumIntervalMs: maximumInterval,
      }),
    ),
  decision: z
    .strictObject({
      asksMax: wholeNumber(1, decisionAsksMax.value).default(6),
      interval: durationIn(0, decisionIntervalMsMax),
      costMax: z
        .number({ error: 'write what all asks may cost together' })
        .nonnegative({ error: 'write 0 or more' })
        .optional(),
      costOf: handler('a function of the input that answers what one ask costs').optional(),
    })
    .refine(({ costMax, costOf }) => (costMax === undefined) === (costOf === undefined), {
      error: 'a bound on cost needs both: costMax, and costOf that says what one ask costs',
    })
    .prefault({})
    .transform(({ asksMax, interval = 1_000, costMax = null, costOf }) => ({
      asksMax,
      intervalMs: interval,
      costMax,
      ...(costOf && { costOf }),
    })),
  onCancel: oneOf(['keep', 'rollback']).default('keep'),
  cancelAttempt: oneOf(['finish', 'abort']).default('finish'),
  verify: z.strictObject({ none: text(1_000, 'why there is nothing to read back') }).optional(),
  transactional: flag.default(false),
  ledger: oneOf(['required', 'optional']).default('required'),
  attach: flag.default(true),
  onAbandon: oneOf(['continue', 'cancel']).default('continue'),
  lookup: oneOf(['plain', 'conclusive'])
    .optional()
    .transform((value) => value ?? null),
  ask: z
    .array(
      z.strictObject({
        id: z
          .string({ error: 'write a name for the question' })
          .regex(NAME, { error: 'write 1 to 64 of A–Z a–z 0–9 _ -' }),
        fields: z
          .array(z.string({ error: 'write names of fields of input' }), {
            error: 'write names of fields of input',
          })
          .min(1, { error: 'write at least one field of input' }),
        message: text(1_000, 'what the person reads above the form').optional(),
      }),
      { error: "write questions: [{ id: 'recipient', fields: ['to'], message: 'Who gets it?' }]" },
    )
    .max(LIMITS.questionsMax.value, { error: `at most ${LIMITS.questionsMax.value} questions` })
    .transform((questions) =>
      questions.map(({ id, fields, message }) => ({ id, fields, ...(message !== undefined && { message }) })),
    )
    .default([]),
  tasks: oneOf(['optional', 'required']).default('optional'),
  resource: handler('a function of the input that answers a name or null').optional(),
  lease: durationIn(1, leaseMsMax),
  inline: z.union([z.literal('auto'), z.literal(false)], { error: "write 'auto' or false" }).default('auto'),
});

/** Each issue as a defect; the field in dotted form, unknown keys by name. */
export function issuesOf(error: z.ZodError): Defect[] {
  return error.issues.slice(0, LIMITS.issuesMax.value).map((issue) => ({
    field: pointerOf(issue.path).slice(1).replaceAll('/', '.') || '(definition)',
    message:
      issue.code === 'unrecognized_keys'
        ? `unknown: ${issue.keys.join(', ')}; check the spelling, or leave it out`
        : issue.message,
  }));
}
