import { expect, test } from 'vitest';
import { createLogger, temporalLogger } from '../../worker/logger.ts';

const CANARY = 'canary-77';

function logging(level = 'trace') {
  const lines: string[] = [];
  const log = createLogger({ level, destination: { write: (line) => void lines.push(line) } });
  return { log, lines };
}

test('the log never has arguments, results, keys or tokens in it, at any level [S2.10]', () => {
  const { log, lines } = logging();
  const secret = {
    input: CANARY,
    args: { card: CANARY },
    result: [CANARY],
    token: CANARY,
    password: CANARY,
    databaseUrl: CANARY,
  };
  log.trace(secret, 'one');
  log.info({ request: secret }, 'two');
  log.error({ a: { request: secret } }, 'three');
  expect(lines).toHaveLength(3);
  expect(lines.join('')).not.toContain(CANARY);
  expect(lines[0]).toContain('[redacted]');
});

test('an error is logged as name, code, message and stack, without what else it carries', () => {
  const { log, lines } = logging();
  log.error(
    { err: Object.assign(new Error('no answer'), { code: 'ECONNRESET', config: { headers: CANARY } }) },
    'failed',
  );
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'error',
    msg: 'failed',
    err: { name: 'Error', code: 'ECONNRESET', message: 'no answer' },
  });
  expect(lines.join('')).not.toContain(CANARY);
});

test('Temporal’s own lines go into the same log, with plain metadata only', () => {
  const { log, lines } = logging('warn');
  const temporal = temporalLogger(log);
  temporal.info('hidden');
  temporal.warn('shown', { workflowId: 'task_x', payload: { data: CANARY }, error: new Error('lost') });
  expect(lines).toHaveLength(1);
  expect(JSON.parse(lines[0] ?? '')).toMatchObject({
    level: 'warn',
    msg: 'shown',
    temporal: { workflowId: 'task_x', error: { message: 'lost' } },
  });
  expect(lines.join('')).not.toContain(CANARY);
});
