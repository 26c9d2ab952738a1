// How the embedded server is run. Untuned, it moves work every 50 ms and fires timers every second; untuned file
// storage stalls under load. Measured with these: 17 ms for a workflow with one activity, 26 ms for a 10 ms timer.

const DYNAMIC_CONFIG = {
  'history.transferProcessorMaxPollRPS': '2000',
  'history.timerProcessorMaxPollRPS': '2000',
  'history.outboundProcessorMaxPollRPS': '2000',
  'history.visibilityProcessorMaxPollRPS': '200',
  'history.timerProcessorMaxTimeShift': '"20ms"',
  'matching.numTaskqueueReadPartitions': '1',
  'matching.numTaskqueueWritePartitions': '1',
} as const;

/** Every commit reaches the disk: a task survives SIGKILL of the server. */
const SQLITE_PRAGMAS = ['journal_mode=WAL', 'synchronous=FULL'] as const;

export const SEARCH_ATTRIBUTES = {
  HoldfastStatus: 'Keyword',
  HoldfastTenant: 'Keyword',
  HoldfastAction: 'Keyword',
  HoldfastWaitingSince: 'Datetime',
} as const;

export interface ServerSettings {
  readonly port: number;
  /** Undefined: no web interface. */
  readonly uiPort: number | undefined;
  /** Undefined: everything in memory, gone with the server. */
  readonly databasePath: string | undefined;
  /** How many events of a history are long already, so that workflows continue as new; default: the server's own. */
  readonly historyEventsMax?: number | undefined;
}

export function serverFlags({ port, uiPort, databasePath, historyEventsMax }: ServerSettings): string[] {
  const config = {
    ...DYNAMIC_CONFIG,
    ...(historyEventsMax !== undefined && {
      'limit.historyCount.suggestContinueAsNew': String(historyEventsMax),
    }),
  };
  return [
    ...['server', 'start-dev', '--ip', '127.0.0.1', '--port', String(port)],
    ...(uiPort === undefined ? ['--headless'] : ['--ui-port', String(uiPort)]),
    ...['--log-level', 'error', '--log-format', 'text'],
    ...Object.entries(SEARCH_ATTRIBUTES).flatMap(([name, type]) => ['--search-attribute', `${name}=${type}`]),
    ...Object.entries(config).flatMap(([key, value]) => ['--dynamic-config-value', `${key}=${value}`]),
    ...(databasePath === undefined
      ? []
      : ['--db-filename', databasePath, ...SQLITE_PRAGMAS.flatMap((pragma) => ['--sqlite-pragma', pragma])]),
  ];
}
