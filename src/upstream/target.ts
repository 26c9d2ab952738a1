/** From a configured server to how it is reached, with what it names of the environment filled in. */
import { HoldfastError } from '../contract/error.ts';
import type { UpstreamDefinition, UpstreamSetting, UpstreamTarget } from '../contract/upstream-definition.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws `invalid_configuration` naming each variable that is not set. The answer holds secrets. */
export function targetOf(name: string, definition: UpstreamDefinition, env: Environment): UpstreamTarget {
  const missing: string[] = [];
  const secrets: string[] = [];
  const fill = (setting: UpstreamSetting): string => {
    if (typeof setting === 'string') return setting;
    const value = env[setting.env];
    if (value === undefined || value === '') missing.push(setting.env);
    const whole = `${setting.prefix ?? ''}${value ?? ''}`;
    secrets.push(value ?? '', whole);
    return whole;
  };
  const fillAll = (settings: Record<string, UpstreamSetting> = {}): Record<string, string> =>
    Object.fromEntries(Object.entries(settings).map(([key, setting]) => [key, fill(setting)]));
  const target = filled(name, definition, { fill, fillAll, secrets });
  if (missing.length === 0) return target;
  const names = [...new Set(missing)].join(', ');
  throw new HoldfastError(
    'invalid_configuration',
    `The upstream ${name} takes ${names} from the environment, and it is not set here.`,
    { details: { upstream: name, missing: [...new Set(missing)] } },
  );
}

interface Filling {
  fill: (setting: UpstreamSetting) => string;
  fillAll: (settings?: Record<string, UpstreamSetting>) => Record<string, string>;
  /** Grows as they are filled in. */
  secrets: string[];
}

function filled(
  name: string,
  { identity = name, command, args = [], env, cwd, url, headers }: UpstreamDefinition,
  { fill, fillAll, secrets }: Filling,
): UpstreamTarget {
  if (command === undefined)
    return { name, identity, secrets, kind: 'http', url: url ?? '', headers: fillAll(headers) };
  return {
    ...{ name, identity, secrets, kind: 'stdio', command },
    args: args.map(fill),
    env: fillAll(env),
    ...(cwd !== undefined && { cwd }),
  };
}
