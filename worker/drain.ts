/**
 * SIGTERM and SIGINT: stop taking work, finish what is under way, leave within bounds.
 *
 * 1. The first signal starts the drain; its steps run in order, each for as long as it was given.
 * 2. The process ends when they are done, with exit code 0; when the bound has passed, with 1.
 * 3. A second signal ends the process at once, with 130: somebody insists.
 * Whatever is cut off is an unknown outcome to the engine and gets reconciled by another worker (S3.8).
 */
import type { Log } from './logger.ts';

export interface DrainStep {
  name: string;
  run(): Promise<unknown>;
}

export interface DrainOptions {
  /** In order: what takes work first, what stores it last. */
  steps: readonly DrainStep[];
  /** For all steps together. */
  boundMs: number;
  log: Log;
  /** For tests. */
  exit?: (code: number) => void;
}

export interface Drain {
  /** The same as a first signal; resolves with the exit code. Safe to call again. */
  start(reason: string): Promise<number>;
  /** Takes the signal handlers away. */
  uninstall(): void;
}

const SIGNALS = ['SIGTERM', 'SIGINT'] as const;
const FORCED = 130;

export function installDrain(options: DrainOptions): Drain {
  const exit = options.exit ?? ((code) => process.exit(code));
  let draining: Promise<number> | null = null;
  const start = (reason: string): Promise<number> => (draining ??= drain(options, reason));
  const onSignal = (signal: NodeJS.Signals): void => {
    if (draining) {
      exit(FORCED);
      return;
    }
    void start(signal).then(exit);
  };
  for (const signal of SIGNALS) process.on(signal, onSignal);
  return {
    start,
    uninstall: () => SIGNALS.forEach((signal) => process.off(signal, onSignal)),
  };
}

async function drain({ steps, boundMs, log }: DrainOptions, reason: string): Promise<number> {
  log.info({ reason, boundMs }, 'draining');
  let timer: NodeJS.Timeout | undefined;
  const bound = new Promise<'bound'>((resolve) => {
    timer = setTimeout(resolve, boundMs, 'bound');
  });
  const isDone = await Promise.race([runSteps(steps, log), bound]);
  clearTimeout(timer);
  if (isDone === 'bound')
    log.error({ boundMs }, 'the drain took longer than its bound; what is cut off gets reconciled');
  else log.info({}, 'drained');
  return isDone === true ? 0 : 1;
}

/** A step that fails doesn't keep the later ones from running. */
async function runSteps(steps: readonly DrainStep[], log: Log): Promise<boolean> {
  let isClean = true;
  for (const { name, run } of steps) {
    try {
      await run();
    } catch (error) {
      isClean = false;
      log.error({ step: name, err: error }, 'a step of the drain failed');
    }
  }
  return isClean;
}
