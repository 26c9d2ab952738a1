/** What a connection logs to; a pino logger fits. It must not write to stdout, which may carry the gateway's protocol. */
import { LIMITS } from '../../contract/limits.ts';
import { cut } from '../../contract/text.ts';

export interface UpstreamLog {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

const WINDOW_MS = 10_000;
/** Of a line as it comes, so that a secret in it is found before it is cut. */
const RAW_CHARS_MAX = 4 * LIMITS.upstreamLogLineCharsMax.value;

/** Shows nothing of it, and tells so at the first chunk. */
export function createHiddenLog(tell: () => void): (chunk: string) => void {
  let isTold = false;
  return () => {
    if (isTold) return;
    isTold = true;
    tell();
  };
}

/** Takes another program's output in chunks and gives it line by line: cleaned, cut, and so many of them in a while. */
export function createLineLog(
  clean: (text: string) => string,
  write: (line: string, leftOut: number) => void,
  now: () => number = () => performance.now(),
): (chunk: string) => void {
  let [rest, written, leftOut, since] = ['', 0, 0, now()];
  const line = (text: string): void => {
    if (now() - since >= WINDOW_MS) [written, since] = [0, now()];
    if (written >= LIMITS.upstreamLogLinesMax.value) return void (leftOut += 1);
    written += 1;
    write(cut(clean(text), LIMITS.upstreamLogLineCharsMax.value), leftOut);
    leftOut = 0;
  };
  return (chunk) => {
    const lines = (rest + chunk).split(/\r?\n/);
    rest = (lines.pop() ?? '').slice(0, RAW_CHARS_MAX);
    for (const text of lines) if (text !== '') line(text.slice(0, RAW_CHARS_MAX));
  };
}
