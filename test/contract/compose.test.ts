// There is no container engine where these tests run: docker-compose.yml is held against the Compose schema and
// against what it must promise.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';

interface Service {
  readonly image?: string;
  readonly build?: unknown;
  readonly restart?: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly depends_on?: Readonly<Record<string, { condition: string }>>;
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly ports?: readonly string[];
  readonly volumes?: readonly string[];
}

const root = join(import.meta.dirname, '../..');
const read = (path: string) => readFileSync(join(root, path), 'utf8');
const text = read('docker-compose.yml');
const compose = parse(text, { merge: true }) as { services: Record<string, Service>; volumes: object };
const services = Object.entries(compose.services);
const dependenciesOf = (service: Service) => Object.entries(service.depends_on ?? {});

/** Named in docs as what Holdfast and the Temporal SDK read; HOLDFAST_HOST is the gateway's bind address. */
const HOLDFAST_VARIABLES =
  /^(HOLDFAST_(CONFIG|STATE_DIR|HOST|PORT|WORKER_METRICS_PORT|DATABASE_URL|ENCRYPTION_KEY)|TEMPORAL_(ADDRESS|NAMESPACE))$/;
const RUNS_HOLDFAST = ['migrate', 'worker', 'gateway'];
const SECRET = /PASSWORD|PWD|KEY|TOKEN|SECRET|_URL$/;

describe('docker-compose.yml', () => {
  it('is valid by the Compose specification', () => {
    const dclint = dirname(createRequire(import.meta.url).resolve('dclint/package.json'));
    const schema = JSON.parse(readFileSync(join(dclint, 'schemas/compose.schema.json'), 'utf8')) as object;
    const validate = new Ajv({ strict: false, validateFormats: false }).compile({
      ...schema,
      $schema: 'http://json-schema.org/draft-07/schema#',
    });
    validate(compose);
    expect(validate.errors).toBeNull();
  });

  it('has Temporal with its database and UI, the ledger with its own, a migration, a worker and a gateway', () => {
    expect(Object.keys(compose.services).sort()).toEqual(
      ['gateway', 'ledger-db', 'migrate', 'temporal', 'temporal-db'].concat([
        'temporal-namespace',
        'temporal-schema',
        'temporal-ui',
        'worker',
      ]),
    );
  });

  it('pins every image to a full version', () => {
    for (const [name, { image }] of services) expect(image, name).toMatch(/:\d+\.\d+(\.\d+)?(-[a-z]+)?$/);
    expect(read('Dockerfile').match(/^FROM .*/gm)).toSatisfy((lines: string[]) =>
      lines.every((line) => /:\d+\.\d+\.\d+-/.test(line)),
    );
  });

  it('checks the health of everything that stays up, and waits for everything that ends', () => {
    const waitedFor = services.flatMap(([, service]) => dependenciesOf(service));
    for (const [name, service] of services) {
      const staysUp = service.restart === 'unless-stopped';
      if (staysUp) {
        expect(service.healthcheck?.test[0], name).toBe('CMD');
      } else {
        expect(service.restart, name).toMatch(/^on-failure:\d+$/);
        expect(waitedFor, name).toContainEqual([name, { condition: 'service_completed_successfully' }]);
      }
    }
  });

  it('waits for health or success wherever one service needs another, never for a mere start', () => {
    for (const [name, service] of services) {
      for (const [needed, { condition }] of dependenciesOf(service)) {
        const endsByItself = compose.services[needed]?.restart !== 'unless-stopped';
        expect(condition, `${name} needs ${needed}`).toBe(
          endsByItself ? 'service_completed_successfully' : 'service_healthy',
        );
      }
    }
  });

  it('starts nothing of Holdfast before the ledger’s database and Temporal’s namespace are there', () => {
    const waitsFor = (name: string): string[] =>
      dependenciesOf(compose.services[name] ?? {}).flatMap(([needed]) => [needed, ...waitsFor(needed)]);
    for (const name of RUNS_HOLDFAST)
      expect(waitsFor(name), name).toEqual(expect.arrayContaining(['ledger-db', 'temporal-namespace']));
  });

  it('asks whoever serves whether it is ready, which is cheap and true of that process, at its own port', () => {
    for (const [name, variable] of [
      ['worker', 'HOLDFAST_WORKER_METRICS_PORT'],
      ['gateway', 'HOLDFAST_PORT'],
    ] as const) {
      const { healthcheck, environment } = compose.services[name] ?? {};
      expect(healthcheck?.test.join(' '), name).toContain(`127.0.0.1:${environment?.[variable]}/readyz`);
    }
  });

  it('holds no secret: each comes from the environment and is refused when unset', () => {
    for (const [name, { environment = {} }] of services) {
      for (const [variable, value] of Object.entries(environment)) {
        if (SECRET.test(variable)) expect(value, `${name}: ${variable}`).toMatch(/\$\{\w+:\?set \w+\}/);
        else expect(value, `${name}: ${variable}`).not.toContain('$');
      }
    }
    expect(text).not.toMatch(/\$\{\w+(:?-|\})/); // no defaults, no silent empties
  });

  it('gives Holdfast only variables it reads, and every one it cannot do without', () => {
    for (const name of RUNS_HOLDFAST) {
      const variables = Object.keys(compose.services[name]?.environment ?? {});
      for (const variable of variables) expect(variable, name).toMatch(HOLDFAST_VARIABLES);
      expect(variables, name).toEqual(
        expect.arrayContaining([
          'HOLDFAST_CONFIG',
          'HOLDFAST_DATABASE_URL',
          'HOLDFAST_ENCRYPTION_KEY',
          'TEMPORAL_ADDRESS',
        ]),
      );
    }
  });

  it('publishes ports on loopback only, and no database at all', () => {
    for (const [name, { ports = [] }] of services) {
      for (const port of ports) expect(port, name).toMatch(/^127\.0\.0\.1:\d+:\d+$/);
      if (name.endsWith('-db')) expect(ports, name).toEqual([]);
    }
  });

  it('registers the search attributes that the embedded server has', async () => {
    const { SEARCH_ATTRIBUTES } = await import('../../src/embedded/server-flags.ts');
    const script = compose.services['temporal-namespace']?.command?.join('\n') ?? '';
    for (const [name, type] of Object.entries(SEARCH_ATTRIBUTES))
      expect(script).toContain(`--name ${name} --type ${type}`);
  });

  it('tunes the server with settings that parse', () => {
    const settings = parse(read('deploy/temporal-dynamic-config.yaml')) as Record<
      string,
      { value: unknown }[]
    >;
    expect(Object.keys(settings)).toContain('history.timerProcessorMaxTimeShift');
    for (const values of Object.values(settings)) expect(values).toHaveLength(1);
  });
});
