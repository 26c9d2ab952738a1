/** Names that Holdfast adds to MCP's messages; clients of other makers read them too, so none is ever renamed. */

/** An argument beside the tool's own: the caller's idempotency key (S1.2). */
export const KEY_ARGUMENT = 'idempotencyKey';

/** `_meta` of a call: the same key, where the tool's arguments leave no room for it. */
export const KEY_META = 'holdfast/idempotencyKey';
/** `_meta` of a published tool: its effect class. */
export const EFFECT_META = 'holdfast/effect';
/** `_meta` of a published tool: its own argument for a key, which is the call's key where no other is given. */
export const OWN_KEY_META = 'holdfast/keyArgument';
/** M1.5: `_meta` of every result that stands for a task. */
export const TASK_META = 'holdfast/task';
/** M6.1: `_meta` (of an error: `data`) once messages of a stream were dropped: `{dropped: count so far}`. */
export const REFETCH_META = 'holdfast/refetch';
/** `_meta` that the gateway itself sets on a call whose arguments JSON can't hold exactly (S1.4). */
export const INEXACT_META = 'holdfast/inexact';

/** `_meta` of a result that is the own answer of another server's tool, and whose: it is passed on as it is. */
export const UPSTREAM_META = 'holdfast/upstream';
