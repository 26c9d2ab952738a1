import { describe, expect, it } from 'vitest';
import { SEARCH_ATTRIBUTE_TYPES, checkSearchAttributes } from '../../worker/migrate.ts';
import type { AttributeConnection } from '../../worker/migrate.ts';

/** A namespace with these attributes. */
function namespaceWith(customAttributes: Record<string, number>): AttributeConnection {
  return {
    operatorService: {
      listSearchAttributes: () => Promise.resolve({ customAttributes }),
      addSearchAttributes: () => Promise.reject(new Error('a check registers nothing')),
    },
  } as unknown as AttributeConnection;
}

describe('the search attributes at the start of a process', () => {
  it('says nothing where all of them are registered', async () => {
    await expect(checkSearchAttributes(namespaceWith(SEARCH_ATTRIBUTE_TYPES), 'default')).resolves.toBe(
      undefined,
    );
  });

  it('refuses a namespace that lacks one, by name, before a task could stand still there', async () => {
    const { HoldfastStatus: _missing, ...others } = SEARCH_ATTRIBUTE_TYPES;
    await expect(checkSearchAttributes(namespaceWith(others), 'default')).rejects.toMatchObject({
      code: 'engine_unprepared',
      details: { namespace: 'default', missing: ['HoldfastStatus'] },
    });
  });

  it('goes on where the namespace does not tell', async () => {
    const closed = {
      operatorService: { listSearchAttributes: () => Promise.reject(new Error('permission denied')) },
    } as unknown as AttributeConnection;
    await expect(checkSearchAttributes(closed, 'default')).resolves.toBe(undefined);
  });
});
