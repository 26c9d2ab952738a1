/**
 * One frame of an SSE response as the SDK writes it: a comment, or an event with one JSON-RPC message. The SDK writes
 * each in one piece; a piece that is anything else is needed as it is.
 */
import { REFETCH_META } from '../../contract/wire-names.ts';
import type { Frame, FrameRole } from './frame-queue.ts';

/** Lines end as SSE says: `.`, `^` and `$` would end one at U+2028 too, which JSON leaves as it is. */
const DATA = /(?<=^|\n)data: ?([^\r\n]*)/g;

type Part = Readonly<Record<string, unknown>>;

export class SseFrame implements Frame {
  readonly chunk: Uint8Array;
  #role: FrameRole | null = null;

  constructor(chunk: Uint8Array) {
    this.chunk = chunk;
  }

  get bytes(): number {
    return this.chunk.byteLength;
  }

  /** Parsed when first asked for, and once. */
  get role(): FrameRole {
    this.#role ??= roleOf(new TextDecoder().decode(this.chunk));
    return this.#role;
  }

  /** The same frame with the refetch mark. */
  marked(dropped: number): Uint8Array {
    const text = new TextDecoder().decode(this.chunk);
    const message = messageIn(text);
    if (message === null) return this.chunk;
    const marked = JSON.stringify(withMark(message, { [REFETCH_META]: { dropped } }));
    return new TextEncoder().encode(text.replace(DATA, () => `data: ${marked}`));
  }
}

function roleOf(text: string): FrameRole {
  if (text.startsWith(':')) return { kind: 'comment' };
  const message = messageIn(text);
  if (message === null) return { kind: 'needed' };
  const { method, id, params } = message;
  if (method === undefined) return { kind: 'response' };
  if (id !== undefined || method === 'notifications/subscriptions/acknowledged') return { kind: 'needed' };
  return { kind: 'replaceable', subject: subjectOf(String(method), isPart(params) ? params : {}) };
}

/** What a notification tells about; null where two of one method may say different things. */
function subjectOf(method: string, { progressToken, taskId, uri }: Part): string | null {
  switch (method) {
    case 'notifications/progress':
      return progressToken === undefined ? null : JSON.stringify([method, progressToken]);
    case 'notifications/tasks':
      return taskId === undefined ? null : JSON.stringify([method, taskId]);
    case 'notifications/resources/updated':
      return JSON.stringify([method, uri]);
    case 'notifications/tools/list_changed':
    case 'notifications/prompts/list_changed':
    case 'notifications/resources/list_changed':
      return method;
    default:
      return null;
  }
}

function withMark(message: Part, mark: Part): Part {
  const { params, result, error } = message;
  if (isPart(result)) return { ...message, result: inMeta(result, mark) };
  if (isPart(error)) {
    const data = error['data'];
    if (data !== undefined && !isPart(data)) return message;
    return { ...message, error: { ...error, data: inMeta(data ?? {}, mark) } };
  }
  return { ...message, params: inMeta(isPart(params) ? params : {}, mark) };
}

function inMeta(part: Part, mark: Part): Part {
  const meta = part['_meta'];
  return { ...part, _meta: { ...(isPart(meta) && meta), ...mark } };
}

/** Null for anything but one whole event with one JSON-RPC message. */
function messageIn(text: string): Part | null {
  const [data, ...more] = [...text.matchAll(DATA)];
  if (data === undefined || more.length > 0 || !text.endsWith('\n\n')) return null;
  try {
    const message: unknown = JSON.parse(data[1] ?? '');
    return isPart(message) ? message : null;
  } catch {
    return null;
  }
}

const isPart = (value: unknown): value is Part =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
