/** Exit codes, fixed because scripts depend on them (architecture.md "Commands and addresses"). */
import { HoldfastError } from '../contract/error.ts';
import type { ErrorCode } from '../contract/error.ts';
import type { TaskStatus } from '../task/outcome.ts';

export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3 } as const;

const USAGE: readonly ErrorCode[] = [
  'invalid_arguments',
  'invalid_key',
  'invalid_resolution',
  'invalid_standing_rule',
  'unknown_action',
  'payload_too_large',
  'invalid_configuration',
  'invalid_contract',
  'encryption_key_required',
  'ledger_unsuitable',
];
const UNREACHABLE: readonly ErrorCode[] = [
  'engine_unavailable',
  'ledger_unavailable',
  'embedded_unavailable',
];

export function exitCodeOfError(error: unknown): number {
  if (!(error instanceof HoldfastError)) return EXIT.failed;
  if (USAGE.includes(error.code)) return EXIT.usage;
  return UNREACHABLE.includes(error.code) ? EXIT.unreachable : EXIT.failed;
}

/** A task that is still open when the command ends is no failure: it was accepted and goes on. */
export function exitCodeOfStatus(status: TaskStatus): number {
  return status === 'failed' || status === 'cancelled' || status === 'needs_attention'
    ? EXIT.failed
    : EXIT.done;
}
