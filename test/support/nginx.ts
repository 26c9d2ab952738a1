/** nginx as Debian ships it, buffering by its defaults, in front of a gateway; where the machine has one. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export const hasNginx = spawnSync('nginx', ['-v']).status === 0;

export interface Nginx {
  url: string;
  close(): Promise<void>;
}

export async function startNginx(target: string, { idleMs }: { idleMs: number }): Promise<Nginx> {
  const folder = mkdtempSync(join(tmpdir(), 'holdfast-nginx-'));
  const port = await freePort();
  writeFileSync(join(folder, 'nginx.conf'), configuration(folder, port, target, idleMs));
  const child = spawn('nginx', ['-p', folder, '-c', join(folder, 'nginx.conf')], { stdio: 'ignore' });
  const url = `http://127.0.0.1:${port}`;
  const close = async () => {
    if (child.exitCode === null && child.kill('SIGTERM')) await once(child, 'exit');
    rmSync(folder, { recursive: true, force: true });
  };
  for (let tries = 1; ; tries += 1) {
    const answer = await fetch(`${url}/healthz`).catch(() => null);
    if (answer?.status === 200) return { url, close };
    if (tries === 200) {
      await close();
      throw new Error('nginx does not answer');
    }
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

const configuration = (folder: string, port: number, target: string, idleMs: number): string => `
daemon off;
worker_processes 1;
pid ${folder}/nginx.pid;
error_log ${folder}/error.log;
events { worker_connections 64; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  server {
    listen 127.0.0.1:${port};
    location / {
      proxy_pass ${target};
      proxy_http_version 1.1;
      proxy_read_timeout ${idleMs}ms;
    }
  }
}
`;

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}
