import { expect, test } from 'vitest';
import fc from 'fast-check';
import { bytesOf } from '../../workflows/json-bytes.ts';

test('[case 14] what the engine’s limits count is counted: JSON in UTF-8, of any script', () => {
  fc.assert(
    fc.property(fc.jsonValue({ stringUnit: 'binary' }), (value) => {
      expect(bytesOf(value)).toBe(Buffer.byteLength(JSON.stringify(value)));
    }),
  );
  expect(bytesOf({ text: 'aö語😀' })).toBe('{"text":""}'.length + 1 + 2 + 3 + 4);
  expect(bytesOf(undefined)).toBe(0);
});
