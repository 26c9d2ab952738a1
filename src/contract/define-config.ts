/**
 * `defineConfig`: the shape of holdfast.config.ts, checked where it is written. Values the environment may override are
 * typed here and read in worker/settings.ts.
 */
import type { Kysely } from 'kysely';
import { z } from 'zod';
import { APPROVAL_ACTION } from '../task/approval.ts';
import type { JsonObject } from '../task/json.ts';
import type { Duration } from './duration.ts';
import { HoldfastError } from './error.ts';
import type { Action } from './implement-action.ts';
import type { ProcedureContract } from './define-procedure.ts';
import { FIXED_GATEWAY_LIMITS, GATEWAY_LIMIT_NAMES } from './gateway-limits.ts';
import type { GatewayLimitName } from './gateway-limits.ts';
import { LIMITS } from './limits.ts';
import type { OAuthDefinition } from './oauth-definition.ts';
import { pointerOf } from './pointer.ts';
import type { UpstreamDefinition } from './upstream-definition.ts';
import { upstreamsSchema } from './upstream-schema.ts';

/** One static bearer token (M7.1), kept as its hash. */
export interface TokenDefinition {
  /** Hex SHA-256 of the token: `printf %s "$TOKEN" | sha256sum`. */
  sha256: string;
  tenant: string;
  subject: string;
  roles: string[];
}

/** What an alert sink is given; the same `id` may come twice. */
export interface AlertMessage {
  id: number;
  alert: {
    type: string;
    taskId: string;
    operationId: string;
    tenant: string;
    action: string;
    message: string;
    data: JsonObject;
  };
  createdAt: number;
}

export type AlertDelivery =
  /** Throws to be called again, up to the bound in docs/limits.md. */
  | { deliver(message: AlertMessage, signal: AbortSignal): Promise<void> }
  /** Signed with HOLDFAST_ALERT_WEBHOOK_SECRET (docs/operations.md). */
  | { webhook: { url: string } };

/** Tokens of your own making, or those of an authorization server (`HOLDFAST_OAUTH_…` win over it). */
export interface AuthDefinition {
  tokens?: TokenDefinition[];
  oauth?: OAuthDefinition;
}

/** A user's procedures: the file with their code, and what callers are promised of each. */
export interface ConfiguredProcedures {
  /** Path of the file that exports them (`procedure(name, …)` of `holdfast/procedure`); beside the configuration where relative. */
  code: string;
  /** What `defineProcedure` answered, one for each that may be called; a child alone needs none. */
  contracts: ProcedureContract[];
}

export interface HoldfastConfig {
  /** What `implementAction` answered; each name once. At most 1,000. */
  actions: Action[];
  /** Names are shared with actions. */
  procedures?: ConfiguredProcedures;
  /** Other people's MCP servers, by the name that clients see in front of their tools (docs/upstream.md). At most 100. */
  upstreams?: Record<string, UpstreamDefinition>;
  /** Runs once at every start of a worker, before it takes work, with the ledger's database: for the tables of transactional actions. Must be repeatable. */
  setup?(ledger: Kysely<unknown>): Promise<void>;
  /** Who may call over HTTP, one of both. Default: anyone on this machine. */
  auth?: AuthDefinition;
  /** How alerts (S6.5) get to a person's side of the world, one of both. Default: an error line in the log. */
  alerts?: AlertDelivery;
  /** Bounds and waits of the gateway, in the unit the name ends in; docs/limits.md has the defaults. */
  limits?: { [Name in GatewayLimitName]?: number };
  gateway?: {
    /** Values of `Host` taken besides loopback's. */
    allowedHosts?: string[];
    /** Values of `Origin` taken besides loopback's. */
    allowedOrigins?: string[];
  };
  worker?: {
    maxCachedWorkflows?: number;
    activitySlots?: number;
    shutdownGrace?: Duration;
    /** With `buildId`: Temporal's worker versioning (docs/operations.md). */
    deployment?: string;
    buildId?: string;
    versioning?: 'auto-upgrade' | 'pinned';
    metricsPort?: number;
  };
  stateDir?: string;
  databaseUrl?: string;
  port?: number;
  taskQueue?: string;
  logLevel?: 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'fatal' | 'silent';
}

/** Holdfast's own (M3.2). */
const RESERVED_NAMES = new Set(['task_get', 'task_wait', 'task_cancel', 'task_answer', APPROVAL_ACTION]);

const functionOf = (what: string) =>
  z.custom<unknown>((value) => typeof value === 'function', { error: `write ${what}` });
const words = z.string().min(1).max(LIMITS.identityLengthMax.value);
const actionSchema = z.custom<Action>(isAction, {
  error: 'write what implementAction(contract, handlers) answered',
});

const procedureSchema = z.custom<ProcedureContract>(
  (value) => isAction(value) && (value as Action).contract.isProcedure === true,
  { error: 'write what defineProcedure({…}) answered' },
);

/** Values are read with the environment (worker/oauth-settings.ts); here only misspelt keys are found. */
const OAUTH_KEYS = [
  'issuer',
  'resource',
  'audience',
  'jwksUrl',
  'jwks',
  'algorithms',
  'clockTolerance',
  'tenantClaim',
  'subjectClaim',
  'rolesClaim',
  'scopes',
] as const satisfies readonly (keyof OAuthDefinition)[];
const oauthSchema = z.partialRecord(z.enum(OAUTH_KEYS), z.unknown());

const shapeSchema = z.strictObject({
  actions: z.array(actionSchema).max(LIMITS.actionsMax.value),
  procedures: z
    .strictObject({
      code: z.string().min(1, { error: 'write the path of the file that exports the procedures' }),
      contracts: z.array(procedureSchema).max(LIMITS.actionsMax.value),
    })
    .optional(),
  upstreams: upstreamsSchema.optional(),
  setup: functionOf('an async function of the ledger’s database').optional(),
  auth: z
    .strictObject({
      tokens: z
        .array(
          z.strictObject({
            sha256: z
              .string()
              .regex(/^[0-9a-f]{64}$/, { error: 'write the token’s SHA-256 as 64 lower-case hex digits' }),
            tenant: words,
            subject: words,
            roles: z.array(words).max(LIMITS.rolesMax.value),
          }),
        )
        .min(1)
        .max(FIXED_GATEWAY_LIMITS.tokensMax.value)
        .superRefine(checkTokens)
        .optional(),
      oauth: oauthSchema.optional(),
    })
    .refine(({ tokens, oauth }) => (tokens === undefined) !== (oauth === undefined), {
      error: 'write either tokens or oauth',
    })
    .optional(),
  alerts: z
    .strictObject({
      deliver: functionOf('an async function of the alert').optional(),
      webhook: z.strictObject({ url: z.unknown() }).optional(),
    })
    .refine(({ deliver, webhook }) => (deliver === undefined) !== (webhook === undefined), {
      error: 'write either deliver or webhook',
    })
    .optional(),
  limits: z.partialRecord(z.enum(GATEWAY_LIMIT_NAMES), z.int().min(0)).optional(),
  gateway: z
    .strictObject({ allowedHosts: z.array(words).optional(), allowedOrigins: z.array(words).optional() })
    .optional(),
  worker: z
    .strictObject({
      maxCachedWorkflows: z.unknown(),
      activitySlots: z.unknown(),
      shutdownGrace: z.unknown(),
      deployment: z.unknown(),
      buildId: z.unknown(),
      versioning: z.unknown(),
      metricsPort: z.unknown(),
    })
    .partial()
    .optional(),
  stateDir: z.unknown().optional(),
  databaseUrl: z.unknown().optional(),
  port: z.unknown().optional(),
  taskQueue: z.unknown().optional(),
  logLevel: z.unknown().optional(),
});

const configSchema = shapeSchema.superRefine(checkNames);

/**
 * Answers `config` itself. Throws `invalid_configuration` (`details.issues`) naming each wrong field and each unknown
 * key, an action that is there twice, and a name that is Holdfast's own.
 */
export function defineConfig(config: HoldfastConfig): HoldfastConfig {
  const parsed = configSchema.safeParse(config);
  if (parsed.success) return config;
  const issues = parsed.error.issues.slice(0, LIMITS.issuesMax.value).map((issue) => ({
    field: pointerOf(issue.path).slice(1).replaceAll('/', '.') || '(configuration)',
    message:
      issue.code === 'unrecognized_keys'
        ? `unknown: ${issue.keys.join(', ')}; check the spelling`
        : issue.message,
  }));
  const list = issues.map(({ field, message }) => `${field}: ${message}`).join('; ');
  const fix = 'write it as docs/configuration.md and the type HoldfastConfig have it';
  throw new HoldfastError(
    'invalid_configuration',
    `The configuration is wrong. ${list}. To mend it, ${fix}.`,
    {
      details: { name: issues[0]?.field ?? '(configuration)', fix, issues },
    },
  );
}

function isAction(value: unknown): boolean {
  if (typeof value !== 'object' || value === null || !('contract' in value) || !('handlers' in value))
    return false;
  const { contract, handlers } = value;
  return (
    typeof contract === 'object' &&
    contract !== null &&
    'name' in contract &&
    typeof handlers === 'object' &&
    handlers !== null
  );
}

function checkNames(
  { actions, procedures }: Pick<z.output<typeof shapeSchema>, 'actions' | 'procedures'>,
  context: z.RefinementCtx,
): void {
  const seen = new Set<string>();
  const named = [
    ...actions.map(({ contract }, index) => ({ name: contract.name, path: ['actions', index] })),
    ...(procedures?.contracts ?? []).map(({ contract }, index) => ({
      name: contract.name,
      path: ['procedures', 'contracts', index],
    })),
  ];
  named.forEach(({ name, path }) => {
    const refuse = (message: string) => context.addIssue({ code: 'custom', path, message });
    if (RESERVED_NAMES.has(name))
      refuse(`${name} is the name of one of Holdfast's own tools: rename the action`);
    if (seen.has(name)) refuse(`${name} is there twice: each action and procedure needs its own name`);
    seen.add(name);
  });
}

function checkTokens(tokens: TokenDefinition[], context: z.RefinementCtx): void {
  const seen = new Set<string>();
  tokens.forEach(({ sha256 }, index) => {
    if (seen.has(sha256))
      context.addIssue({ code: 'custom', path: [index, 'sha256'], message: 'the same token is there twice' });
    seen.add(sha256);
  });
}
