// Whether a Temporal server answers and knows our search attributes.
import { connect } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Connection } from '@temporalio/client';
import { messageOf } from './embedded-error.ts';
import { SEARCH_ATTRIBUTES } from './server-flags.ts';

const POLL_MS = 25;
const CONNECT_TIMEOUT_MS = 1_000;

/** Polls until healthy; gives up at `timeoutMs` or as soon as `isHopeless`, and returns the last reason. */
export async function untilHealthy(
  target: { readonly address: string; readonly namespace: string },
  { timeoutMs, isHopeless }: { readonly timeoutMs: number; readonly isHopeless: () => boolean },
): Promise<{ isHealthy: true } | { isHealthy: false; reason: string }> {
  const giveUpAt = Date.now() + timeoutMs;
  for (;;) {
    const reason = await probe(target).catch((error: unknown) => messageOf(error));
    if (reason === undefined) return { isHealthy: true };
    if (isHopeless() || Date.now() > giveUpAt) return { isHealthy: false, reason };
    await delay(POLL_MS);
  }
}

/** What is wrong with it, or undefined. */
async function probe(target: {
  readonly address: string;
  readonly namespace: string;
}): Promise<string | undefined> {
  const { address, namespace } = target;
  // A gRPC client refused once waits a second before it tries again: knock first.
  if (!(await isListening(address))) return 'nothing listens on its port';
  const connection = await Connection.connect({ address, connectTimeout: CONNECT_TIMEOUT_MS });
  try {
    return await connection.withDeadline(Date.now() + CONNECT_TIMEOUT_MS, async () => {
      await connection.workflowService.describeNamespace({ namespace });
      const { customAttributes } = await connection.operatorService.listSearchAttributes({ namespace });
      const missing = Object.keys(SEARCH_ATTRIBUTES).filter((name) => !(name in (customAttributes ?? {})));
      return missing.length > 0 ? `search attributes missing: ${missing.join(', ')}` : undefined;
    });
  } finally {
    await connection.close();
  }
}

function isListening(address: string): Promise<boolean> {
  const [host, port] = address.split(':');
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port) });
    socket.setTimeout(CONNECT_TIMEOUT_MS);
    const settle = (answer: boolean) => {
      socket.destroy();
      resolve(answer);
    };
    socket.once('connect', () => settle(true));
    socket.once('timeout', () => settle(false));
    socket.once('error', () => settle(false));
  });
}
