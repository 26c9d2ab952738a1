/**
 * A connection to Temporal that may be closed while calls are under way over it.
 *
 * The SDK repeats a call that a dying server cut from a timer of its own. Once the connection is closed gRPC throws there,
 * where nobody can catch it, and the process ends with it. Here such a call is refused instead, as any other error.
 */
import type { Connection } from '@temporalio/client';

type Interceptor = NonNullable<Connection['options']['interceptors']>[number];
type Call = ReturnType<Interceptor>;

/** gRPC's FAILED_PRECONDITION: an error that the SDK does not repeat. */
const REFUSED = 9;

/** The same connection. */
export function quietAtItsEnd(connection: Connection): Connection {
  // Behind the SDK's own, which repeats: it makes each further attempt through this one.
  connection.options.interceptors?.push((options, nextCall) => {
    try {
      return nextCall(options) as Call;
    } catch (error) {
      return refusedCall(error instanceof Error ? error.message : String(error));
    }
  });
  return connection;
}

function refusedCall(details: string): Call {
  const nothing = (): void => undefined;
  const call: Pick<
    Call,
    'start' | 'sendMessage' | 'halfClose' | 'startRead' | 'cancelWithStatus' | 'getPeer'
  > = {
    start(metadata, listener) {
      queueMicrotask(() => {
        listener?.onReceiveMessage?.(null);
        listener?.onReceiveStatus?.({ code: REFUSED, details, metadata });
      });
    },
    sendMessage: nothing,
    halfClose: nothing,
    startRead: nothing,
    cancelWithStatus: nothing,
    getPeer: () => '',
  };
  return call as Call;
}
