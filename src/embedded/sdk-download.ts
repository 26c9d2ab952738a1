// Fetches a Temporal binary the way the Temporal SDK does. Its download is only reachable by starting a test server,
// which also fixes the process's SDK runtime for good, so that happens in a process of its own.
import { execFile } from 'node:child_process';
import { chmod, readdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Tool } from './tool.ts';

const run = promisify(execFile);
const require = createRequire(import.meta.url);

/** Of the SDK in use, which decides what is downloaded. */
export const sdkVersion = (): string =>
  (require('@temporalio/testing/package.json') as { version: string }).version;

const DOWNLOAD_TIMEOUT_MS = 180_000;

const START_AND_STOP = `
const { TestWorkflowEnvironment } = (await import(process.argv[1])).default;
const server = { executable: { type: 'cached-download', downloadDir: process.argv[3] } };
const env = process.argv[2] === 'dev-server'
  ? await TestWorkflowEnvironment.createLocal({ server })
  : await TestWorkflowEnvironment.createTimeSkipping({ server });
await env.teardown();
`;

/** Leaves the binary in `scratch` and returns its path. */
export async function fetchWithSdk(tool: Tool, scratch: string, env: NodeJS.ProcessEnv): Promise<string> {
  const testing = require.resolve('@temporalio/testing');
  const args = ['--input-type=module', '-e', START_AND_STOP, testing, tool.sdkDownload, scratch];
  try {
    await run(process.execPath, args, { env, timeout: DOWNLOAD_TIMEOUT_MS });
  } catch (error) {
    const { stderr = '' } = error as { stderr?: string };
    const reason = stderr.split('\n').find((line) => /error/i.test(line)) ?? 'ended without a word';
    throw new Error(reason.trim().slice(0, 160), { cause: error });
  }
  const [name] = await readdir(scratch);
  if (!name) throw new Error("the SDK's download left no file");
  const binary = join(scratch, name);
  await chmod(binary, 0o755);
  return binary;
}
