/** Writes docs/configuration.md from the table of settings. */
import { CONFIG, FOREIGN_VARIABLES } from './settings.ts';

export function configurationReference(): string {
  const settings = Object.values(CONFIG).map(({ env, key, expected, meaning, defaultText }) =>
    row([code(env), code(key), expected, defaultText, meaning]),
  );
  const foreign = FOREIGN_VARIABLES.map(({ env, meaning }) =>
    row([env.split(', ').map(code).join(', '), meaning]),
  );
  return [
    '# Configuration',
    '',
    '<!-- Generated from worker/settings.ts by `npm run docs`; do not edit. -->',
    '',
    'A variable wins over the file, the file over the default. A variable set to nothing counts as not set. Everything is',
    'read once, at the start; every wrong value is named in one error, `invalid_configuration`.',
    '',
    '| variable | key in `holdfast.config.ts` | shape | default | meaning |',
    '| --- | --- | --- | --- | --- |',
    ...settings,
    '',
    'Besides these the file has `actions` (what `implementAction` answers), `procedures` (docs/procedures.md), `upstreams`',
    '([other people’s servers](upstream.md)), `setup`, `auth`, `alerts`, `limits` and `gateway`; see `HoldfastConfig` in src/contract/define-config.ts. Any other key is refused as misspelt.',
    '',
    '## Read under other names',
    '',
    '| variable | meaning |',
    '| --- | --- |',
    ...foreign,
    '',
  ].join('\n');
}

const code = (name: string | null): string => (name === null ? '' : `\`${name}\``);
const row = (cells: readonly string[]): string =>
  `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
