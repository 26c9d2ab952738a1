/** From a configured server to how it is reached, with what it names of the environment filled in. */
import { HoldfastError } from '../contract/error.ts';
import type { UpstreamDefinition, UpstreamSetting, UpstreamTarget } from '../contract/upstream-definition.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Throws `invalid_configuration` naming each variable that is not set. The answer holds secrets. */
export function targetOf(name: string, definition: UpstreamDefinition, env: Environment): UpstreamTarget {
  const missing: string[] = [];
  const fill = (setting: UpstreamSetting): string => {
    if (typeof setting === 'string') return setting;
    const value = env[setting.env];
    if (value === undefined || value === '') missing.push(setting.env);
    return `${setting.prefix ?? ''}${value ?? ''}`;
  };
  const fillAll = (settings: Record<string, UpstreamSetting> = {}): Record<string, string> =>
    Object.fromEntries(Object.entries(settings).map(([key, setting]) => [key, fill(setting)]));
  const target = filled(name, definition, fill, fillAll);
  if (missing.length === 0) return target;
  const names = [...new Set(missing)].join(', ');
  throw new HoldfastError(
    'invalid_configuration',
    `The upstream ${name} takes ${names} from the environment, and it is not set here.`,
    { details: { upstream: name, missing: [...new Set(missing)] } },
  );
}

function filled(
  name: string,
  { identity = name, command, args = [], env, cwd, url, headers }: UpstreamDefinition,
  fill: (setting: UpstreamSetting) => string,
  fillAll: (settings?: Record<string, UpstreamSetting>) => Record<string, string>,
): UpstreamTarget {
  if (command === undefined)
    return { name, identity, kind: 'http', url: url ?? '', headers: fillAll(headers) };
  return {
    ...{ name, identity, kind: 'stdio', command },
    args: args.map(fill),
    env: fillAll(env),
    ...(cwd !== undefined && { cwd }),
  };
}
