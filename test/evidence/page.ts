/** How pages of evidence are written, and what of them two runs agree on. */
import type { Json } from '../../src/task/json.ts';

/** What a run wrote, by file name. */
export type Pages = Record<string, string>;

export function table(head: string[], rows: string[][]): string {
  const line = (cells: string[]) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |\n`;
  return [head, head.map(() => '---'), ...rows].map(line).join('');
}

export const jsonBlock = (value: unknown): string =>
  `\`\`\`json\n${JSON.stringify(value, null, 2)}\n\`\`\`\n`;

const BEGIN = '<!-- measured in the run that wrote this -->';
const END = '<!-- end of measured -->';

/** Numbers in here differ from run to run; everything else of a page does not. */
export const measured = (text: string): string => `${BEGIN}\n\n${text}\n${END}\n`;

/** A page as every run writes it: measured figures are left out. */
export function withoutFigures(page: string): string {
  return page
    .split(BEGIN)
    .map((part, index) => {
      if (index === 0) return part;
      const [inside = '', ...after] = part.split(END);
      return [inside.replaceAll(/\d[\d,.]*/g, '#'), ...after].join(END);
    })
    .join(BEGIN);
}

const TIME_MS_LEAST = 1_500_000_000_000;
const ISO_TIME = /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z/g;

/**
 * Replaces what differs between runs: times by `TIME`, each task id by its number, each hash of the audit by its number.
 * One of these for one story, so that a thing has the same name on all its pages.
 */
export class StableNames {
  readonly #names = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  /** Everywhere from now on. */
  name(value: string, kind: string): string {
    const known = this.#names.get(value);
    if (known !== undefined) return known;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    this.#names.set(value, `${kind}-${count}`);
    return `${kind}-${count}`;
  }

  of<Value>(value: Value): Value {
    return this.#replace(value as Json) as Value;
  }

  #replace(value: Json): Json {
    if (typeof value === 'number') return value >= TIME_MS_LEAST ? 'TIME' : value;
    if (typeof value === 'string') return this.#inText(value);
    if (value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return value.map((each) => this.#replace(each));
    return Object.fromEntries(
      Object.entries(value).map(([key, each]) => [this.#inText(key), this.#replace(each)]),
    );
  }

  #inText(text: string): string {
    let named = text.replaceAll(ISO_TIME, 'TIME');
    for (const [value, name] of this.#names) named = named.replaceAll(value, name);
    return named;
  }
}
