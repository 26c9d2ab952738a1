/** Turns environment and file into settings by the table; collects everything that is wrong before it throws. */
import { configurationError } from './configuration-error.ts';
import type { ConfigurationIssue } from './configuration-error.ts';
import { CONFIG } from './settings.ts';
import type { SettingName, SettingValue } from './settings.ts';

type ReadSettings = {
  [Name in SettingName]: Name extends 'databaseUrl' ? SettingValue<Name> | null : SettingValue<Name>;
};

/** Throws `invalid_configuration` with every wrong value. */
export function readSettings(env: NodeJS.ProcessEnv, file: object): ReadSettings {
  const issues: ConfigurationIssue[] = [];
  const entries = (Object.keys(CONFIG) as SettingName[]).map((name) => {
    const { env: variable, key } = CONFIG[name];
    const given = env[variable];
    // A variable set to nothing counts as not set: that is how most supervisors unset one.
    const isFromEnv = given !== undefined && given.trim() !== '';
    const value = isFromEnv ? given : key === null ? undefined : valueAt(file, key);
    return [name, read(name, isFromEnv || key === null ? variable : key, value, issues)] as const;
  });
  const [first, ...others] = issues;
  if (first) throw configurationError([first, ...others]);
  return Object.fromEntries(entries) as unknown as ReadSettings;
}

function read(name: SettingName, source: string, value: unknown, issues: ConfigurationIssue[]): unknown {
  const { schema, expected, fix, default: fallback } = CONFIG[name];
  if (value === undefined) return fallback?.() ?? null;
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  issues.push({ name: source, problem: 'it has another shape', expected, fix });
  return null;
}

function valueAt(file: object, key: string): unknown {
  let value: unknown = file;
  for (const segment of key.split('.')) {
    if (typeof value !== 'object' || value === null) return undefined;
    value = (value as Record<string, unknown>)[segment];
  }
  return value;
}
