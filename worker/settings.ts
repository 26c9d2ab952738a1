/**
 * Every setting, once: where it comes from, what it may be, what it means. `docs/configuration.md` is generated from
 * this table; nothing else reads the environment for Holdfast's own settings.
 */
import { userInfo } from 'node:os';
import { z } from 'zod';
import { parseEncryptionKeys } from '../src/client/encryption-keys.ts';
import { isWebhookUrl, parseWebhookSecret } from './alert-webhook.ts';
import { OAUTH_SETTINGS } from './oauth-settings.ts';
import { duration, roles, setting, text, wholeNumber } from './setting.ts';

const webhookSecrets = z
  .string()
  .transform((list) => list.split(',').map(parseWebhookSecret))
  .pipe(z.array(z.instanceof(Uint8Array)).min(1).max(5));

const httpAddress = text.regex(/^https?:\/\/[^\s]+$/).nullable();

/** In the working directory. */
export const DEFAULT_STATE_DIR = '.holdfast';

const otlpProtocol = (env: string, ofWhat: string) =>
  setting({
    env,
    key: null,
    schema: z.enum(['http/json', 'http/protobuf', 'grpc']).nullable(), // `grpc` is refused where traces are on
    expected: '`http/json` or `http/protobuf`',
    fix: 'name the collector’s address for OTLP over HTTP, usually port 4318, and leave this out: gRPC is not spoken',
    meaning: `${ofWhat}. JSON is sent in either case, which a receiver of OTLP over HTTP takes. With \`grpc\` nothing starts once traces are on.`,
    defaultText: '`http/json`',
    default: () => null,
  });

export const CONFIG = {
  stateDir: setting({
    env: 'HOLDFAST_STATE_DIR',
    key: 'stateDir',
    schema: text,
    expected: 'the path of a directory',
    fix: 'name a directory on a local disk that this user may write',
    meaning: 'Where one-machine use keeps its state: the SQLite ledger, the embedded server, generated keys.',
    defaultText: '`.holdfast` in the working directory',
    default: () => DEFAULT_STATE_DIR,
  }),
  databaseUrl: setting({
    env: 'HOLDFAST_DATABASE_URL',
    key: 'databaseUrl',
    schema: text.regex(/^(sqlite:.+|postgres(ql)?:\/\/.+)$/),
    expected: '`sqlite:FILE` or `postgres://USER:PASSWORD@HOST:PORT/DATABASE`',
    fix: 'use a file on a local disk, or PostgreSQL where several hosts share the ledger',
    meaning: 'The ledger. It must outlive every process that uses it.',
    defaultText: '`sqlite:ledger.db` in the state directory',
    default: null,
  }),
  port: setting({
    env: 'HOLDFAST_PORT',
    key: 'port',
    schema: wholeNumber(0, 65_535),
    expected: 'a port from 1 to 65535, or 0 for any free one',
    fix: 'set a free port',
    meaning: 'The HTTP port of the gateway: `/mcp`, `/healthz`, `/readyz`, `/metrics`.',
    defaultText: '7400',
    default: () => 7_400,
  }),
  host: setting({
    env: 'HOLDFAST_HOST',
    key: null,
    schema: text.max(255),
    expected: 'an address or host name to listen on',
    fix: 'leave it out, or configure `auth` before listening beyond this machine',
    meaning: 'Where HTTP listens. Anything but loopback is refused unless `auth` says who may call.',
    defaultText: '`127.0.0.1`',
    default: () => '127.0.0.1',
  }),
  taskQueue: setting({
    env: 'HOLDFAST_TASK_QUEUE',
    key: 'taskQueue',
    schema: text.max(255),
    expected: 'a name of 1 to 255 characters',
    fix: 'give gateways and workers that belong together the same name',
    meaning: 'The Temporal task queue that connects gateways and workers.',
    defaultText: '`holdfast`',
    default: () => 'holdfast',
  }),
  logLevel: setting({
    env: 'HOLDFAST_LOG_LEVEL',
    key: 'logLevel',
    schema: z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']),
    expected: 'one of trace, debug, info, warn, error, fatal, silent',
    fix: 'use one of these words',
    meaning: 'What the structured log (standard error) contains. Never arguments or results at any level.',
    defaultText: '`info`',
    default: () => 'info',
  }),
  maxCachedWorkflows: setting({
    env: 'HOLDFAST_MAX_CACHED_WORKFLOWS',
    key: 'worker.maxCachedWorkflows',
    schema: wholeNumber(2, 100_000),
    expected: 'a whole number from 2 to 100000',
    fix: 'allow about 0.4 MB of memory for each',
    meaning: 'Tasks a worker keeps in memory; others are replayed when something happens to them.',
    defaultText: '150 (about 60 MB)',
    default: () => 150,
  }),
  activitySlots: setting({
    env: 'HOLDFAST_ACTIVITY_SLOTS',
    key: 'worker.activitySlots',
    schema: wholeNumber(1, 10_000),
    expected: 'a whole number from 1 to 10000',
    fix: 'set how many handlers may run at once in one worker',
    meaning: 'Handlers that run at the same time in one worker.',
    defaultText: '40',
    default: () => 40,
  }),
  shutdownGraceMs: setting({
    env: 'HOLDFAST_SHUTDOWN_GRACE',
    key: 'worker.shutdownGrace',
    schema: duration(0, 3_600_000),
    expected: 'a duration such as `15s`, at most `1h`',
    fix: 'give it a little less than your supervisor’s own kill timeout',
    meaning:
      'After SIGTERM or SIGINT: how long running handlers may finish. Then they are aborted and reconciled elsewhere.',
    defaultText: '`15s`',
    default: () => 15_000,
  }),
  deploymentName: setting({
    env: 'HOLDFAST_DEPLOYMENT',
    key: 'worker.deployment',
    schema: z
      .string()
      .trim()
      .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/)
      .nullable(),
    expected: 'a name of 1 to 100 letters, digits, `-` and `_`',
    fix: 'give all builds of one worker fleet the same name, and each its own `HOLDFAST_BUILD_ID`',
    meaning:
      'The Temporal worker deployment this worker belongs to. With it a build takes no work before it was made current.',
    defaultText: 'none: any worker takes any task',
    default: () => null,
  }),
  buildId: setting({
    env: 'HOLDFAST_BUILD_ID',
    key: 'worker.buildId',
    schema: z
      .string()
      .trim()
      .regex(/^[A-Za-z0-9][A-Za-z0-9._+-]{0,127}$/)
      .nullable(),
    expected: 'an id of 1 to 128 letters, digits, `.`, `_`, `+` and `-`',
    fix: 'use the commit or the tag that the release was built from',
    meaning: 'Which build of that deployment this worker is. Set both or neither.',
    defaultText: 'none',
    default: () => null,
  }),
  versioning: setting({
    env: 'HOLDFAST_VERSIONING',
    key: 'worker.versioning',
    schema: z.enum(['auto-upgrade', 'pinned']),
    expected: '`auto-upgrade` or `pinned`',
    fix: 'leave it out, unless old handlers must finish what they began',
    meaning:
      'Of a deployment: whether open tasks go on with the current build, or stay with the build that started them for as long as its workers run.',
    defaultText: '`auto-upgrade`',
    default: () => 'auto-upgrade' as const,
  }),
  metricsTokenSha256: setting({
    env: 'HOLDFAST_METRICS_TOKEN_SHA256',
    key: null,
    schema: z
      .string()
      .trim()
      .regex(/^[0-9a-f]{64}$/)
      .nullable(),
    expected: '64 lower-case hex digits',
    fix: 'hash a token of your own: `printf %s "$TOKEN" | sha256sum`',
    meaning: 'Who may read `/metrics`: whoever sends `Authorization: Bearer TOKEN`.',
    defaultText: 'none: only this machine may, and not through a proxy',
    default: () => null,
  }),
  workerMetricsPort: setting({
    env: 'HOLDFAST_WORKER_METRICS_PORT',
    key: 'worker.metricsPort',
    schema: wholeNumber(0, 65_535).nullable(),
    expected: 'a port from 1 to 65535, or 0 for any free one',
    fix: 'set a free port, and HOLDFAST_HOST where it is read from elsewhere',
    meaning: 'A worker without a gateway serves `/metrics`, `/healthz` and `/readyz` there.',
    defaultText: 'none: it serves nothing',
    default: () => null,
  }),
  encryptionKeys: setting({
    env: 'HOLDFAST_ENCRYPTION_KEY',
    key: null,
    schema: z.string().transform(parseEncryptionKeys),
    expected: 'comma-separated keys of 32 bytes in base64, newest first',
    fix: 'make one with `openssl rand -base64 32`; to rotate, put the new key in front',
    meaning:
      'Encrypts what Temporal stores, under the first key; all are tried for reading. Needed by contracts with sensitive fields. Keep the oldest: the hashes of sensitive fields derive from it.',
    defaultText: 'none: histories are plain text (`holdfast dev` makes one)',
    default: () => [],
  }),
  alertWebhookUrl: setting({
    env: 'HOLDFAST_ALERT_WEBHOOK_URL',
    key: 'alerts.webhook.url',
    schema: text.refine(isWebhookUrl).nullable(),
    expected: 'an `https://…` address without credentials (`http://` on this machine)',
    fix: 'put what proves the sender into HOLDFAST_ALERT_WEBHOOK_SECRET, not into the address',
    meaning: 'Where workers POST alerts, signed (operations.md has how to verify one). Needs the secret.',
    defaultText: 'none: alerts are error lines in the log, or go to `alerts.deliver`',
    default: () => null,
  }),
  alertWebhookSecrets: setting({
    env: 'HOLDFAST_ALERT_WEBHOOK_SECRET',
    key: null,
    schema: webhookSecrets,
    expected: 'comma-separated secrets, `whsec_` and 24 to 64 bytes in base64, newest first, at most 5',
    fix: 'make one with `echo "whsec_$(openssl rand -base64 32)"`; to rotate, put the new one in front',
    meaning: 'Signs alerts; a request carries one signature for each.',
    defaultText: 'none',
    default: () => [],
  }),
  otlpEndpoint: setting({
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
    key: null,
    schema: httpAddress,
    expected: 'an `http://…` or `https://…` address',
    fix: 'name the collector’s address for OTLP over HTTP, usually port 4318',
    meaning: 'Turns traces on: they are POSTed to `/v1/traces` below this address, as OTLP in JSON.',
    defaultText: 'none: no traces, at no cost',
    default: () => null,
  }),
  otlpTracesEndpoint: setting({
    env: 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT',
    key: null,
    schema: httpAddress,
    expected: 'an `http://…` or `https://…` address',
    fix: 'name the whole address, path included',
    meaning: 'Like the one above, for traces alone and taken as it is.',
    defaultText: 'none',
    default: () => null,
  }),
  otlpProtocol: otlpProtocol('OTEL_EXPORTER_OTLP_PROTOCOL', 'What is spoken to the collector'),
  otlpTracesProtocol: otlpProtocol('OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', 'The same, for traces alone'),
  tracesExporter: setting({
    env: 'OTEL_TRACES_EXPORTER',
    key: null,
    schema: z.enum(['otlp', 'none']).nullable(),
    expected: '`otlp` or `none`',
    fix: 'to export otherwise, register a TracerProvider of your own before Holdfast is opened',
    meaning: '`otlp` without an address sends to port 4318 of this machine; `none` turns traces off.',
    defaultText: 'as the addresses above say',
    default: () => null,
  }),
  otelDisabled: setting({
    env: 'OTEL_SDK_DISABLED',
    key: null,
    schema: z
      .string()
      .trim()
      .toLowerCase()
      .pipe(z.enum(['true', 'false']))
      .transform((word) => word === 'true'),
    expected: '`true` or `false`',
    fix: 'leave it out',
    meaning: '`true` turns traces off, whatever else is set.',
    defaultText: '`false`',
    default: () => false,
  }),
  ...OAUTH_SETTINGS,
  tenant: setting({
    env: 'HOLDFAST_TENANT',
    key: null,
    schema: text.max(255),
    expected: 'a name of 1 to 255 characters',
    fix: 'name the tenant to act for',
    meaning: 'For the command line and loopback HTTP: whose tasks these are.',
    defaultText: '`local`',
    default: () => 'local',
  }),
  subject: setting({
    env: 'HOLDFAST_SUBJECT',
    key: null,
    schema: text.max(255),
    expected: 'a name of 1 to 255 characters',
    fix: 'name who acts',
    meaning: 'For the command line and loopback HTTP: who asks and decides.',
    defaultText: 'the user of the operating system',
    default: () => userName(),
  }),
  roles: setting({
    env: 'HOLDFAST_ROLES',
    key: null,
    schema: roles,
    expected: 'comma-separated role names, at most 100',
    fix: 'for example `buyer,operator`',
    meaning: 'For the command line and loopback HTTP: the roles of the subject.',
    defaultText: 'none',
    default: () => [],
  }),
} as const;

/** Read by others under these names; listed so that one page has them all. */
export const FOREIGN_VARIABLES = [
  {
    env: 'HOLDFAST_CONFIG',
    meaning:
      'The configuration file, like `--config`. Default: `holdfast.config.ts` (or `.js`, `.mjs`) in the working directory.',
  },
  { env: 'TEMPORAL_ADDRESS', meaning: 'host:port of Temporal. Default: `localhost:7233`.' },
  { env: 'TEMPORAL_NAMESPACE', meaning: 'Temporal namespace. Default: `default`.' },
  { env: 'TEMPORAL_API_KEY', meaning: 'API key for Temporal Cloud or a server that asks for one.' },
  {
    env: 'TEMPORAL_TLS, TEMPORAL_TLS_CLIENT_CERT_PATH, TEMPORAL_TLS_CLIENT_KEY_PATH, TEMPORAL_TLS_SERVER_CA_CERT_PATH, TEMPORAL_TLS_SERVER_NAME',
    meaning: 'TLS to Temporal, as `@temporalio/envconfig` reads it.',
  },
  {
    env: 'TEMPORAL_PROFILE, TEMPORAL_CONFIG_FILE',
    meaning: 'A profile of Temporal’s own configuration file.',
  },
  {
    env: 'OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_TRACES_SAMPLER_ARG, OTEL_EXPORTER_OTLP_HEADERS, OTEL_BSP_SCHEDULE_DELAY',
    meaning:
      'Of traces that are on, as OpenTelemetry’s SDK reads them. The service is named `holdfast` by default.',
  },
  { env: 'TEMPORAL_CLI_PATH', meaning: 'The Temporal binary of `holdfast dev` and `demo`.' },
] as const;

export type SettingName = keyof typeof CONFIG;
export type SettingValue<Name extends SettingName> = z.output<(typeof CONFIG)[Name]['schema']>;

function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'unknown'; // a container may run under a user id without a name
  }
}
