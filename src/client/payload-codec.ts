/**
 * Encrypts what Temporal stores: every argument, result, signal, update, query answer and activity payload is
 * AES-256-GCM under the newest key of HOLDFAST_ENCRYPTION_KEY (interfaces.md "Secrets in history").
 *
 * Guarantees: a payload written under any configured key is readable; a changed byte, key id or foreign key is
 * `payload_undecryptable`. Does not hide sizes, workflow ids, search attributes (tenant, action, status) or the
 * one-line summary. Payloads written before encryption was switched on stay readable.
 *
 * Every client and worker of a namespace needs it, or reads ciphertext.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type { Payload, PayloadCodec } from '@temporalio/common';
import proto from '@temporalio/proto'; // CommonJS whose names Node can't see
import { HoldfastError } from '../contract/error.ts';
import type { EncryptionKey } from './encryption-keys.ts';

const CIPHER = 'aes-256-gcm';
const IV_BYTES = 12;
const TAG_BYTES = 16;
const ENCODING = 'binary/encrypted';
const KEY_ID = 'holdfast-key-id';

const { Payload: PayloadMessage } = proto.temporal.api.common.v1;

export class EncryptionCodec implements PayloadCodec {
  readonly #newest: EncryptionKey;
  readonly #byId: ReadonlyMap<string, EncryptionKey>;

  /** `keys` newest first, at least one. */
  constructor(keys: readonly EncryptionKey[]) {
    const [newest] = keys;
    if (!newest) throw new TypeError('EncryptionCodec needs at least one key');
    this.#newest = newest;
    this.#byId = new Map(keys.map((key) => [key.id, key]));
  }

  async encode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) => this.#encrypt(payload));
  }

  async decode(payloads: Payload[]): Promise<Payload[]> {
    return payloads.map((payload) => (isEncrypted(payload) ? this.#decrypt(payload) : payload));
  }

  #encrypt(payload: Payload): Payload {
    const iv = randomBytes(IV_BYTES);
    const cipher = createCipheriv(CIPHER, this.#newest.bytes, iv).setAAD(Buffer.from(this.#newest.id));
    const sealed = Buffer.concat([cipher.update(PayloadMessage.encode(payload).finish()), cipher.final()]);
    return {
      metadata: { encoding: Buffer.from(ENCODING), [KEY_ID]: Buffer.from(this.#newest.id) },
      data: Buffer.concat([iv, cipher.getAuthTag(), sealed]),
    };
  }

  #decrypt(payload: Payload): Payload {
    const keyId = Buffer.from(payload.metadata?.[KEY_ID] ?? []).toString();
    const key = this.#byId.get(keyId);
    const data = payload.data ?? new Uint8Array();
    if (!key) throw undecryptable(keyId, 'no configured key has its id');
    if (data.length < IV_BYTES + TAG_BYTES) throw undecryptable(keyId, 'it is too short');
    try {
      const decipher = createDecipheriv(CIPHER, key.bytes, data.subarray(0, IV_BYTES)).setAAD(
        Buffer.from(keyId),
      );
      decipher.setAuthTag(data.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      const opened = Buffer.concat([decipher.update(data.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
      return PayloadMessage.decode(opened);
    } catch (cause) {
      throw undecryptable(keyId, 'it was changed after it was written', cause);
    }
  }
}

function isEncrypted(payload: Payload): boolean {
  return Buffer.from(payload.metadata?.['encoding'] ?? []).toString() === ENCODING;
}

function undecryptable(keyId: string, why: string, cause?: unknown): HoldfastError {
  const name = /^[0-9a-f]{16}$/.test(keyId) ? keyId : 'none';
  return new HoldfastError(
    'payload_undecryptable',
    `A payload (key id ${name}) can not be decrypted: ${why}.`,
    {
      details: { keyId: name },
      cause,
    },
  );
}
