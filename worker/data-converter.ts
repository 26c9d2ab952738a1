import type { DataConverter } from '@temporalio/common';
import type { EncryptionKey } from '../src/client/encryption-keys.ts';
import { EncryptionCodec } from '../src/client/payload-codec.ts';

/** The same for every client and worker of a namespace. Without keys, histories are plain text. */
export function dataConverterOf(keys: readonly EncryptionKey[]): DataConverter {
  return { payloadCodecs: keys.length === 0 ? [] : [new EncryptionCodec(keys)] };
}
