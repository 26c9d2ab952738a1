/**
 * Counts a vitest run and prints its closing line.
 *
 * 1. Whatever could hide a failure counts as one: a file that didn't load, a failing hook, an error outside any test.
 * 2. The line is written when the process exits, so nothing comes after it.
 * 3. Tests left out by `-t` were not asked for and are not counted as skipped.
 * 4. Where HOLDFAST_TEST_TOTALS names a file, the totals go there as JSON and the caller prints the line.
 */
import { writeFileSync, writeSync } from 'node:fs';
import type { Reporter, TestModule, TestSuite, Vitest } from 'vitest/node';
import { closingLine } from './closing-line.ts';
import type { Totals } from './closing-line.ts';

const STDOUT = 1;

export default class ClosingLineReporter implements Reporter {
  #namePattern: RegExp | undefined;
  #totals: Totals = { passed: 0, failed: 0, skipped: 0 };

  onInit(vitest: Vitest): void {
    this.#namePattern = vitest.config.testNamePattern;
    process.once('exit', () => {
      // A run that ended badly without a failing test (nothing to run, a broken config) is one failure.
      if (process.exitCode && this.#totals.failed === 0) this.#totals = { ...this.#totals, failed: 1 };
      const totalsFile = process.env['HOLDFAST_TEST_TOTALS'];
      if (totalsFile) writeFileSync(totalsFile, JSON.stringify(this.#totals));
      else writeSync(STDOUT, `${closingLine(this.#totals)}\n`);
    });
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    let [passed, failed, skipped] = [0, unhandledErrors.length, 0];
    for (const module of modules) {
      failed += module.errors().length + suiteErrors(module);
      for (const test of module.children.allTests()) {
        const { state } = test.result();
        if (state === 'passed') passed += 1;
        else if (state === 'skipped') skipped += this.#wasAskedFor(test.fullName) ? 1 : 0;
        else failed += 1; // failed, or never finished
      }
    }
    this.#totals = { passed, failed, skipped };
  }

  // vitest matches the pattern against names joined by a space; `fullName` joins them with ' > '.
  #wasAskedFor(fullName: string): boolean {
    return this.#namePattern?.test(fullName.replaceAll(' > ', ' ')) ?? true;
  }
}

function suiteErrors(module: TestModule): number {
  let errors = 0;
  for (const suite of module.children.allSuites()) errors += (suite satisfies TestSuite).errors().length;
  return errors;
}
