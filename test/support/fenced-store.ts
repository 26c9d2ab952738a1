/** A target that keeps the highest fence it has seen and refuses a lower one, in the test's own process. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

interface Write {
  operationId: string;
  fence: number;
  isRefused: boolean;
}

export interface FencedStore {
  readonly url: string;
  /** In the order of their coming, for each value. */
  writes(value: string): Write[];
  close(): void;
}

export async function openFencedStore(): Promise<FencedStore> {
  const written: (Write & { value: string })[] = [];
  const server = createServer((request, response) => {
    const operationId = (request.url ?? '').slice(1);
    const answer = (status: number): void => void response.writeHead(status).end('{}');
    if (request.method === 'GET') {
      const isKnown = written.some((write) => write.operationId === operationId && !write.isRefused);
      return answer(isKnown ? 200 : 404);
    }
    text(request).then(
      (body) => {
        const { value, fence } = JSON.parse(body) as { value: string; fence: number };
        const isRefused = written.some((write) => write.value === value && write.fence > fence);
        written.push({ operationId, value, fence, isRefused });
        answer(isRefused ? 409 : 200);
      },
      () => answer(400),
    );
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    writes: (value) =>
      written
        .filter((write) => write.value === value)
        .map(({ operationId, fence, isRefused }) => ({ operationId, fence, isRefused })),
    close: () => void server.close(),
  };
}
