import { describe, expect, test } from 'vitest';
import { defineConfig } from '../../../src/contract/define-config.ts';
import type { UpstreamDefinition } from '../../../src/contract/upstream-definition.ts';

const define = (upstreams: Record<string, unknown>) => () =>
  defineConfig({ actions: [], upstreams: upstreams as Record<string, UpstreamDefinition> });

test('[M8.1] a server is a command or an address, and everything about its tools is data', () => {
  const read = { tool: 'read', args: { path: 'args.path' } };
  const tools = {
    write: {
      as: 'write',
      effect: 'conditional',
      key: { argument: 'id' },
      before: { old: read },
      precondition: { reads: { now: read }, holds: 'true', reason: 'why' },
      refused: 'result.isError',
      lookup: {
        ...read,
        applied: 'true',
        notApplied: 'false',
        conclusive: true,
        result: { a: { value: 1 }, b: 'args.b' },
      },
      verify: { ...read, verified: 'true', notYet: 'false' },
      rollback: {
        kind: 'inBand',
        reads: { now: read },
        ways: [{ when: 'true', steps: [read], remains: '"x"' }, read],
      },
      verifyRollback: { ...read, verified: 'true' },
      approval: { when: 'true', roles: ['boss'], expiresIn: '1h' },
      deadlines: { attempt: '1m' },
      retry: { maximumRetries: 1 },
      onCancel: 'rollback',
      sensitive: { args: ['/token'], result: ['/content/*/text'] },
      resource: 'args.path',
      lease: '5m',
    },
  };
  expect(
    define({
      files: {
        command: 'npx',
        args: ['server', { env: 'ROOT' }],
        env: { API_TOKEN: { env: 'TOKEN' } },
        cwd: '/srv',
        safe: ['read*'],
        tools,
      },
      bank: {
        url: 'https://bank.example/mcp',
        headers: { Authorization: { env: 'BANK', prefix: 'Bearer ' } },
        expose: 'configured',
      },
    }),
  ).not.toThrow();
});

describe('what is refused', () => {
  const cases: [string, Record<string, unknown>, string, string][] = [
    [
      'a secret in a header',
      { a: { url: 'https://a.example', headers: { authorization: 'Bearer abc' } } },
      'upstreams.a.headers.authorization',
      "{ env: 'NAME' }",
    ],
    ...['Ocp-Apim-Subscription-Key', 'x-functions-key', 'X-Key', 'X-Region'].map(
      (name): [string, Record<string, unknown>, string, string] => [
        `a written header ${name}, which may be a secret`,
        { a: { url: 'https://a.example', headers: { [name]: 'abc' } } },
        `upstreams.a.headers.${name}`,
        "{ env: 'NAME' }",
      ],
    ),
    [
      'a secret in the environment',
      { a: { command: 'x', env: { GITHUB_TOKEN: 'abc' } } },
      'upstreams.a.env.GITHUB_TOKEN',
      "{ env: 'NAME' }",
    ],
    [
      'a secret in an address',
      { a: { url: 'https://a.example/?api_key=abc' } },
      'upstreams.a.url',
      'without user, password',
    ],
    [
      'a user in an address',
      { a: { url: 'https://u:p@a.example/' } },
      'upstreams.a.url',
      'without user, password',
    ],
    ['both ways', { a: { command: 'x', url: 'https://a.example' } }, 'upstreams.a', 'either command or url'],
    ['neither way', { a: {} }, 'upstreams.a', 'either command or url'],
    ['a misspelt key', { a: { command: 'x', tolls: {} } }, 'upstreams.a', 'unknown: tolls'],
    [
      'a misspelt key of a tool',
      { a: { command: 'x', tools: { t: { aproval: {} } } } },
      'upstreams.a.tools.t',
      'unknown: aproval',
    ],
    [
      'a read in two ways',
      { a: { command: 'x', tools: { t: { verify: { tool: 'r', reads: {}, verified: 'true' } } } } },
      'upstreams.a.tools.t.verify',
      '',
    ],
    ['a name that is none', { 'a b': { command: 'x' } }, 'upstreams.a b', ''],
    [
      'one shown name twice',
      { a: { command: 'x', tools: { t: { as: 'pay' } } }, b: { command: 'y', tools: { u: { as: 'pay' } } } },
      'upstreams.b.tools.u.as',
      't of a is shown as pay already',
    ],
    [
      'one identity twice',
      { a: { command: 'x' }, b: { command: 'y', identity: 'a' } },
      'upstreams.b.identity',
      'take one server for the other',
    ],
  ];
  test.each(cases)('[M8.1] %s', (_name, upstreams, field, message) => {
    try {
      define(upstreams)();
      expect.unreachable();
    } catch (error) {
      expect(error).toMatchObject({ code: 'invalid_configuration' });
      expect(String(error)).toContain(message);
      expect(String(error)).not.toContain('abc');
      const { issues } = (error as { details: { issues: { field: string }[] } }).details;
      expect(issues.map((issue) => issue.field)).toContain(field);
    }
  });
});
