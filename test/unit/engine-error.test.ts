import { ServiceError } from '@temporalio/client';
import { describe, expect, test } from 'vitest';
import { isDeadline } from '../../src/client/engine-error.ts';

const refused = (code: number) =>
  new ServiceError('Failed to query Workflow', {
    cause: Object.assign(new Error('refused'), { code, details: '', metadata: {} }),
  });

describe('an engine that does not answer within the deadline', () => {
  test.each([
    ['our clock was first', 4, true],
    ['the server’s clock was first', 1, true],
    ['it is not there at all', 14, false],
  ])('%s', (_case, code, expected) => {
    expect(isDeadline(refused(code))).toBe(expected);
  });
});
