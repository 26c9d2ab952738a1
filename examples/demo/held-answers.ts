/**
 * Stands between Holdfast and an MCP server on stdio: `held-answers.ts FILE TOOL COMMAND ARGS…`. While FILE is there, answers to
 * TOOL wait. That is how the demo gets between an effect and the answer to it.
 */
import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';

interface Message {
  id?: string | number;
  method?: string;
  params?: { name?: string };
}

const LOOK_MS = 20;
const [file = '', tool = '', command = '', ...args] = process.argv.slice(2);
const server = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
const calls = new Set<unknown>();

createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line) as Message;
  if (method === 'tools/call' && params?.name === tool) calls.add(id);
  server.stdin.write(`${line}\n`);
});
createInterface({ input: server.stdout }).on('line', (line) => void pass(line));
process.stdin.once('close', () => server.kill('SIGKILL'));
server.once('exit', () => process.exit(0));

async function pass(line: string): Promise<void> {
  const { id, method } = JSON.parse(line) as Message;
  if (method === undefined && calls.delete(id)) while (existsSync(file)) await delay(LOOK_MS);
  process.stdout.write(`${line}\n`);
}
