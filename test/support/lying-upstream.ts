/**
 * Stands between Holdfast and a real MCP server on stdio, as a process: `lying-upstream.ts FOLDER COMMAND ARGS…`. Every line goes
 * through byte for byte, except where a test put a fault into FOLDER (lying-upstream-control.ts).
 *
 * Owns the server's process: neither outlives the other. Faults are taken once each, whichever of several processes gets there
 * first. What it saw is appended to FOLDER/seen.jsonl before it goes on.
 */
import { spawn } from 'node:child_process';
import { appendFileSync, existsSync, readFileSync, readdirSync, unlinkSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { JsonObject } from '../../src/task/json.ts';
import type { PlacedFault, Sight } from './lying-upstream-control.ts';

const POLL_MS = 10;
const [folder = '', command = '', ...args] = process.argv.slice(2);

interface Message {
  id?: string | number;
  method?: string;
  params?: { name?: string; arguments?: JsonObject; requestId?: string | number };
}

const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const faults = new Map<string | number, PlacedFault>();
const see = (what: Sight) =>
  appendFileSync(join(folder, 'seen.jsonl'), `${JSON.stringify({ ...what, pid: process.pid })}\n`);

function die(): never {
  server.kill('SIGKILL');
  process.exit(1);
}

function faultFor(tool: string): PlacedFault | undefined {
  const names = readdirSync(folder).filter((name) => name.endsWith('.fault.json'));
  for (const name of names.sort()) {
    try {
      const fault = JSON.parse(readFileSync(join(folder, name), 'utf8')) as PlacedFault;
      if (fault.tool !== tool) continue;
      unlinkSync(join(folder, name));
      return fault;
    } catch {
      continue; // another process took it
    }
  }
  return undefined;
}

async function opened({ gate }: PlacedFault): Promise<void> {
  while (!existsSync(join(folder, gate))) await new Promise((resolve) => setTimeout(resolve, POLL_MS));
}

async function toServer(line: string): Promise<void> {
  const message = JSON.parse(line) as Message;
  const { id, method, params } = message;
  if (method === 'notifications/cancelled' && params?.requestId !== undefined)
    see({ event: 'cancelled', id: params.requestId });
  if (method === 'tools/call' && id !== undefined) {
    const tool = params?.name ?? '';
    const fault = faultFor(tool);
    see({ event: 'called', id, tool, args: params?.arguments ?? {}, ...(fault && { fault: fault.kind }) });
    if (fault?.kind === 'dies before the effect') die();
    if (fault?.kind === 'lies') {
      process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id, result: fault.answer })}\n`);
      return;
    }
    if (fault?.kind === 'keeps the request') await opened(fault);
    else if (fault) faults.set(id, fault);
  }
  server.stdin.write(`${line}\n`);
}

async function fromServer(line: string): Promise<void> {
  const { id, method } = JSON.parse(line) as Message;
  const fault = id === undefined || method !== undefined ? undefined : faults.get(id);
  if (fault && id !== undefined) {
    faults.delete(id);
    see({ event: 'answered', id, tool: fault.tool, fault: fault.kind });
    if (fault.kind === 'dies after the effect') die();
    if (fault.kind === 'swallows the answer') return;
    await opened(fault);
  }
  process.stdout.write(`${line}\n`);
}

see({ event: 'started', server: server.pid ?? 0 });
createInterface({ input: process.stdin }).on('line', (line) => void toServer(line));
createInterface({ input: server.stdout }).on('line', (line) => void fromServer(line));
process.stdin.once('close', die);
server.once('exit', (code) => process.exit(code ?? 1));
