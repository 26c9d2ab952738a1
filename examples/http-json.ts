/**
 * The two kinds of HTTP call a handler makes. A call that changes the world throws what its status proves; a look
 * answers "unreadable" instead of throwing, since a failed look says nothing about the effect.
 */
import { ActionFailure, fetchFailure } from '../src/index.ts';

/** POSTs with the operation's key. Answers the parsed body of a 2xx; anything else throws (S5). */
export async function postJson<Body>(
  url: string,
  body: object,
  { operationId, signal }: { operationId: string; signal: AbortSignal },
): Promise<Body> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': operationId },
    body: JSON.stringify(body),
    signal,
    redirect: 'error', // a second request must not be taken for the first
  });
  const failure = fetchFailure(response);
  if (failure === null) return (await response.json()) as Body;
  const said = await response.text().catch(() => '');
  throw new ActionFailure({ ...failure, message: `${failure.message}: ${said.slice(0, 500)}` });
}

export type Look<Body> =
  { kind: 'found'; body: Body } | { kind: 'absent' } | { kind: 'unreadable'; reason: string };

export async function getJson<Body>(url: string, { signal }: { signal: AbortSignal }): Promise<Look<Body>> {
  try {
    const response = await fetch(url, { signal, redirect: 'error' });
    if (response.status === 404) return { kind: 'absent' };
    if (!response.ok) return { kind: 'unreadable', reason: `the look was answered HTTP ${response.status}` };
    return { kind: 'found', body: (await response.json()) as Body };
  } catch (error) {
    return { kind: 'unreadable', reason: error instanceof Error ? error.message : String(error) };
  }
}
