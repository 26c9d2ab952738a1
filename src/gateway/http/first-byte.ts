/**
 * M6.2: an SSE response begins with a comment, so that its headers and first byte leave at once. Node sends headers with
 * the first byte of a body, and the SDK's streams have none until there is something to say; its keepalive goes on later.
 *
 * The place where M6.1 will bound what waits for a slow reader.
 */
const OPENING = new TextEncoder().encode(': open\n\n');

export function withFirstByte(response: Response): Response {
  if (response.body === null || !response.headers.get('content-type')?.startsWith('text/event-stream'))
    return response;
  const reader = response.body.getReader();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(OPENING);
    },
    async pull(controller) {
      const { done, value } = await reader.read();
      if (done) controller.close();
      else controller.enqueue(value);
    },
    cancel: (reason) => reader.cancel(reason),
  });
  return new Response(body, { status: response.status, headers: response.headers });
}
