/**
 * The shape of `upstreams` in a configuration. What can be told without the server is refused here: unknown keys, a
 * secret written down, a server that is reached two ways. Expressions and names of tools are checked against its list.
 */
import { z } from 'zod';
import { parseDuration } from './duration.ts';
import { LIMITS } from './limits.ts';
import type { UpstreamDefinition } from './upstream-definition.ts';

const words = (what: string, limit = 1_000) =>
  z
    .string({ error: `write ${what}` })
    .trim()
    .min(1, { error: `write ${what}` })
    .max(limit, { error: `at most ${limit} characters` });
const expression = (what: string) => words(`CEL: ${what}`, LIMITS.celLengthMax.value);
const names = z.array(words('a name', 255));
const duration = z.custom<number | string>((value) => parseDuration(value) !== null, {
  error: "write a duration such as '250ms', '10s', '5m', '24h' or '7d'",
});
const fromEnvironment = z.strictObject(
  { env: words('the name of a variable', 255), prefix: z.string().max(255).optional() },
  { error: "a header is not written down here: { env: 'NAME' } names the variable that holds it" },
);
const setting = z.union([z.string().max(8_192), fromEnvironment], {
  error: "write text, or { env: 'NAME' }",
});

const argument = z.union([expression('the argument'), z.strictObject({ value: z.json() })], {
  error: 'write CEL, or { value: … } for what is passed as it is',
});
const args = z.record(z.string(), argument).optional();
const tool = words('the name of a tool of the same server', 255);
const ask = z.strictObject({ tool, args });
const identifier = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, { error: 'a name for CEL: letters, digits and _' });
const reads = z.record(identifier, ask).optional();
const looking = { tool: tool.optional(), args, reads };

const hasOneWayToRead = ({
  tool: single,
  args: own,
  reads: many,
}: {
  tool?: unknown;
  args?: unknown;
  reads?: unknown;
}) => (single !== undefined ? many === undefined : own === undefined);
const ONE_WAY = { error: 'write either tool (and args), or reads' };

const verify = z
  .strictObject({
    ...looking,
    verified: expression('true where it is as promised'),
    notYet: expression('true where it can’t be told yet').optional(),
  })
  .refine(hasOneWayToRead, ONE_WAY);

const way = {
  when: expression('true where this way is taken').optional(),
  tool: tool.optional(),
  args,
  steps: z.array(ask).min(1).max(LIMITS.undoStepsMax.value).optional(),
  remains: expression('text: what is left behind').optional(),
};
const hasOneCall = ({
  tool: single,
  args: own,
  steps,
}: {
  tool?: unknown;
  args?: unknown;
  steps?: unknown;
}) => (single === undefined ? steps !== undefined && own === undefined : steps === undefined);
const ONE_CALL = { error: 'write either tool (and args), or steps' };
const kind = z.enum(['inBand', 'compensate']).optional();

const rollback = z.union(
  [
    z.strictObject({ none: words('why the effect can not be undone') }),
    z.strictObject({ outOfBand: words('how a person undoes it') }),
    z.strictObject({ kind, reads, ...way }).refine(hasOneCall, ONE_CALL),
    z.strictObject({
      kind,
      reads,
      ways: z.array(z.strictObject(way).refine(hasOneCall, ONE_CALL)).min(1).max(LIMITS.undoStepsMax.value),
    }),
  ],
  { error: 'write { tool, args }, { steps }, { ways }, { outOfBand: how } or { none: why }' },
);

const approval = z.strictObject({
  when: expression('true where a person is asked').optional(),
  roles: names.optional(),
  quorum: z.int().min(1).max(10).optional(),
  requesterMayDecide: z.boolean().optional(),
  expiresIn: duration.optional(),
  onExpiry: z.enum(['deny', 'halt', 'remind', 'escalate']).optional(),
  escalateTo: names.optional(),
  warnBefore: duration.optional(),
  challenge: z.string().optional(),
  mayAnswerOverMcp: z.boolean().optional(),
});

const terms = {
  approval: approval.optional(),
  deadlines: z
    .strictObject({
      attempt: duration,
      verify: duration,
      run: duration,
      settle: duration,
      heartbeat: duration,
      sla: duration,
      tool: duration,
    })
    .partial()
    .optional(),
  retry: z
    .strictObject({ maximumRetries: z.int().min(0), initialInterval: duration, maximumInterval: duration })
    .partial()
    .optional(),
  onCancel: z.enum(['keep', 'rollback']).optional(),
  cancelAttempt: z.enum(['finish', 'abort']).optional(),
  onAbandon: z.enum(['continue', 'cancel']).optional(),
  attach: z.boolean().optional(),
};

const pointers = z
  .array(z.string().regex(/^(\/[^/]*)+$/, { error: "write JSON pointers: '/path/to/field'" }))
  .optional();

const toolDefinition = z.strictObject({
  as: z
    .string()
    .regex(new RegExp(`^[A-Za-z0-9_-]{1,${LIMITS.toolNameLengthMax.value}}$`), {
      error: `1 to ${LIMITS.toolNameLengthMax.value} of A–Z a–z 0–9 _ -`,
    })
    .optional(),
  hidden: z.boolean().optional(),
  effect: z.enum(['safe', 'conditional', 'unsafe']).optional(),
  durable: z.boolean().optional(),
  asTask: z.boolean().optional(),
  key: z
    .union([
      z.strictObject({ argument: words('the name of an argument', 255) }),
      z.strictObject({ header: z.string().regex(/^[A-Za-z0-9-]{1,100}$/) }),
      z.strictObject({ meta: words('a key of _meta', 255) }),
      z.strictObject({ natural: words('why repeating the same arguments adds nothing') }),
    ])
    .optional(),
  before: z.record(identifier, ask).optional(),
  precondition: z
    .strictObject({
      ...looking,
      holds: expression('true where the effect may be brought about'),
      reason: words('what a person reads where it does not hold').optional(),
    })
    .refine(hasOneWayToRead, ONE_WAY)
    .optional(),
  refused: expression('true where an answer with isError proves that nothing was done').optional(),
  lookup: z
    .strictObject({
      ...looking,
      applied: expression('true where the effect is there'),
      notApplied: expression('true where it is not').optional(),
      conclusive: z.boolean().optional(),
      result: z.record(z.string(), argument).optional(),
    })
    .refine(hasOneWayToRead, ONE_WAY)
    .optional(),
  verify: z.union([z.strictObject({ none: words('why there is nothing to read back') }), verify]).optional(),
  rollback: rollback.optional(),
  verifyRollback: verify.optional(),
  ...terms,
  sensitive: z.strictObject({ args: pointers, result: pointers }).optional(),
  resource: expression('text that names the resource').optional(),
  lease: duration.optional(),
});

/** A value under such a name is taken for a secret. */
const SECRET_NAME =
  /auth|token|secret|passw|credential|cookie|signature|api[-_]?key|access[-_]?key|private[-_]?key|session/i;

const isWrittenDown = (name: string, value: unknown): boolean =>
  typeof value === 'string' && SECRET_NAME.test(name);

function checkServer(server: z.output<typeof serverShape>, context: z.RefinementCtx): void {
  const refuse = (path: string[], message: string) => context.addIssue({ code: 'custom', path, message });
  const isStdio = server.command !== undefined;
  if (isStdio === (server.url !== undefined)) refuse([], 'write either command or url');
  for (const field of ['args', 'env', 'cwd'] as const)
    if (!isStdio && server[field] !== undefined) refuse([field], 'goes with command, not with url');
  if (isStdio && server.headers !== undefined) refuse(['headers'], 'goes with url, not with command');
  for (const [name, value] of Object.entries(server.env ?? {}))
    if (isWrittenDown(name, value))
      refuse(
        ['env', name],
        "a secret is not written down here: { env: 'NAME' } names the variable that holds it",
      );
}

const serverShape = z.strictObject({
  identity: words('what the ledger knows the server by', 255).optional(),
  command: words('the command that starts the server', 4_096).optional(),
  args: z.array(setting).max(1_000).optional(),
  env: z.record(z.string(), setting).optional(),
  cwd: words('a folder', 4_096).optional(),
  url: z
    .string()
    .refine(isHttpUrl, {
      error: 'write an http(s) address without user, password, fragment and secrets in its query',
    })
    .optional(),
  headers: z.record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), fromEnvironment).optional(),
  expose: z.enum(['all', 'configured']).optional(),
  safe: names.optional(),
  defaults: z.strictObject(terms).optional(),
  tools: z.record(z.string(), toolDefinition).optional(),
});

function isHttpUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, username, password, hash, searchParams } = new URL(text);
  const hasSecret = [...searchParams.keys()].some((name) => SECRET_NAME.test(name));
  return /^https?:$/.test(protocol) && username === '' && password === '' && hash === '' && !hasSecret;
}

function checkIdentities(servers: Record<string, UpstreamDefinition>, context: z.RefinementCtx): void {
  const seen = new Map<string, string>();
  for (const [name, { identity = name }] of Object.entries(servers)) {
    const other = seen.get(identity);
    if (other !== undefined)
      context.addIssue({
        code: 'custom',
        path: [name, 'identity'],
        message: `${other} has the same identity: the ledger would take one server for the other`,
      });
    seen.set(identity, name);
  }
}

function checkShownNames(servers: Record<string, UpstreamDefinition>, context: z.RefinementCtx): void {
  const seen = new Map<string, string>();
  for (const [name, { tools = {} }] of Object.entries(servers))
    for (const [tool, { as }] of Object.entries(tools)) {
      if (as === undefined) continue;
      const other = seen.get(as);
      if (other !== undefined)
        context.addIssue({
          code: 'custom',
          path: [name, 'tools', tool, 'as'],
          message: `${other} is shown as ${as} already`,
        });
      seen.set(as, `${tool} of ${name}`);
    }
}

/** By name: what clients see in front of the tools’ names. */
export const upstreamsSchema = z
  .record(
    z.string().regex(/^[A-Za-z0-9_-]{1,64}$/, { error: '1 to 64 of A–Z a–z 0–9 _ -' }),
    serverShape.superRefine(checkServer),
  )
  .refine((servers) => Object.keys(servers).length <= LIMITS.upstreamsMax.value, {
    error: `at most ${LIMITS.upstreamsMax.value} servers`,
  })
  .superRefine((servers, context) => {
    checkIdentities(servers as Record<string, UpstreamDefinition>, context);
    checkShownNames(servers as Record<string, UpstreamDefinition>, context);
  });
