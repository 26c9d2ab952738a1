import type { EncryptionKey } from '../src/client/encryption-keys.ts';
import { HoldfastError } from '../src/contract/error.ts';
import type { Action } from '../src/contract/implement-action.ts';

/**
 * interfaces.md "Secrets in history": sensitive arguments never reach an engine in plain text. Throws
 * `encryption_key_required` naming the actions.
 */
export function checkKeyPresence(actions: readonly Action[], keys: readonly EncryptionKey[]): void {
  if (keys.length > 0) return;
  const names = actions
    .filter(({ contract }) => contract.sensitive.input.length > 0 || contract.sensitive.output.length > 0)
    .map(({ contract }) => contract.name);
  if (names.length === 0) return;
  throw new HoldfastError(
    'encryption_key_required',
    `${names.join(', ')}: the contract has sensitive fields, and HOLDFAST_ENCRYPTION_KEY is not set. Make a key with \`openssl rand -base64 32\`.`,
    { details: { actions: names, name: 'HOLDFAST_ENCRYPTION_KEY' } },
  );
}
