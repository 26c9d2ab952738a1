/** What goes over one MCP connection, heard on its way: requests with their ids, cancels, responses. */
import type { Client } from '@modelcontextprotocol/client';

type Message = { id?: unknown; method?: string; params?: { requestId?: unknown } };

export interface Wiretap {
  /** The id of the request of this method that was sent last. */
  lastId(method: string): number;
  /** Whether the client has told the gateway that it gives the request up. */
  wasGivenUp(id: unknown): boolean;
  responsesTo(id: unknown): number;
  end(): void;
}

export function tapped(client: Client): Wiretap {
  const { transport } = client;
  if (!transport) throw new Error('the client is not connected');
  const sent: Message[] = [];
  const received: Message[] = [];
  const send = transport.send.bind(transport);
  const hear = transport.onmessage;
  transport.send = (message, options) => {
    sent.push(...([message].flat() as Message[]));
    return send(message, options);
  };
  transport.onmessage = (message, extra) => {
    received.push(message as Message);
    hear?.(message, extra);
  };
  return {
    lastId: (method) => Number(sent.findLast((message) => message.method === method)?.id),
    wasGivenUp: (id) =>
      sent.some(({ method, params }) => method === 'notifications/cancelled' && params?.requestId === id),
    responsesTo: (id) =>
      received.filter((message) => message.method === undefined && message.id === id).length,
    end: () => {
      transport.send = send;
      if (hear) transport.onmessage = hear;
    },
  };
}
