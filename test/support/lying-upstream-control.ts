/** The test's side of lying-upstream.ts: which call meets which fault, and what its processes saw. */
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import type { JsonObject } from '../../src/task/json.ts';

export type LyingFault =
  /** The process is gone with the answer; the server has done it. */
  | { kind: 'dies after the effect' }
  /** The process is gone, and the server never heard of the call. */
  | { kind: 'dies before the effect' }
  /** The server has done it, and its answer stays here until `open`. */
  | { kind: 'keeps the answer' }
  /** The server hears of the call at `open`. */
  | { kind: 'keeps the request' }
  /** The server has done it, and nobody is ever told; the connection lives. */
  | { kind: 'swallows the answer' }
  /** Answers in the server's place, which never hears of the call. */
  | { kind: 'lies'; answer: JsonObject };

/** As it lies in the folder; `gate` is the file that opens it. */
export type PlacedFault = LyingFault & { tool: string; gate: string };

export type Sight =
  | { event: 'started'; server: number }
  | { event: 'called'; id: string | number; tool: string; args: JsonObject; fault?: LyingFault['kind'] }
  | { event: 'answered'; id: string | number; tool: string; fault: LyingFault['kind'] }
  | { event: 'cancelled'; id: string | number };
export type Seen = Sight & { pid: number };

export interface Fault {
  /** Resolves once the call with this fault has come that far. */
  met(): Promise<void>;
  /** For what is kept. */
  open(): void;
}

export class LyingControl {
  readonly folder: string;
  #faults = 0;

  constructor(folder: string) {
    this.folder = folder;
    mkdirSync(folder, { recursive: true });
  }

  /** The next call of `tool`, after those with earlier faults. */
  next(tool: string, fault: LyingFault): Fault {
    const id = String(++this.#faults).padStart(6, '0');
    const name = join(this.folder, `${id}.fault.json`);
    const gate = `${id}.open`;
    const before = this.seen().length;
    writeFileSync(`${name}.new`, JSON.stringify({ ...fault, tool, gate }));
    renameSync(`${name}.new`, name);
    const event =
      fault.kind.endsWith('answer') || fault.kind === 'dies after the effect' ? 'answered' : 'called';
    return {
      met: () =>
        expect
          .poll(
            () =>
              this.seen()
                .slice(before)
                .some((seen) => seen.event === event && seen.tool === tool && seen.fault === fault.kind),
            { timeout: 30_000, interval: 20 },
          )
          .toBe(true),
      open: () => writeFileSync(join(this.folder, gate), ''),
    };
  }

  seen(): Seen[] {
    const file = join(this.folder, 'seen.jsonl');
    if (!existsSync(file)) return [];
    return readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Seen);
  }

  /** How often the tool was called, whatever became of it. */
  calls(tool: string): Extract<Seen, { event: 'called' }>[] {
    return this.seen().filter((seen) => seen.event === 'called' && seen.tool === tool) as Extract<
      Seen,
      { event: 'called' }
    >[];
  }
}
