/**
 * Both sides of each race about one request, on each transport: what went over the wire, in order, and what it came to
 * (M4.1, M5.1, M5.2). Played against a real gateway whose task and clock are driven by hand, so that every run is the same.
 *
 * The call is a safe one, whose task is given up with its request (M5.3): that shows who the gateway thinks won.
 */
import { setImmediate as turn } from 'node:timers/promises';
import type { RequestEnd } from '../../src/gateway/index.ts';
import { deferred } from '../support/deferred.ts';
import { drivenGateway } from '../support/driven-gateway.ts';
import type { DrivenGateway } from '../support/driven-gateway.ts';
import { HandDrivenClock } from '../support/hand-driven-clock.ts';
import type { RpcResponse } from '../support/mcp-messages.ts';
import { LEGS } from './wires.ts';
import type { Leg, Wire } from './wires.ts';

export interface Transcript {
  transport: string;
  race: string;
  /** `→` from the client, `←` to it, `·` what happened meanwhile. */
  lines: string[];
  /** The one terminal state of the request, as the gateway has it. */
  terminal: string;
  hasFinalResponse: boolean;
  /** What on the wire cancels a request here. */
  signal: string;
  /** What the client must ignore. */
  ignores: string;
  task: string;
}

const LIMITS = { idleMs: 1_500, blockingMs: 2_000, progressIntervalMs: 0 };
const CALL = {
  method: 'tools/call',
  params: { name: 'read_balance', arguments: { account: 'a' } },
  meta: { progressToken: 'p' },
};

/** One race being played. */
interface Play {
  leg: Leg;
  wire: Wire;
  clock: HandDrivenClock;
  driven: DrivenGateway;
  lines: string[];
  /** Plays until so many messages have come, and writes them down. */
  hear(count: number): Promise<void>;
  ended(): Promise<RequestEnd>;
}

interface Race {
  name: string;
  fits(leg: Leg): boolean;
  ignores: string;
  play(play: Play): Promise<void>;
}

const RACES: Race[] = [
  {
    name: 'cancel wins',
    fits: ({ cancelledBy }) => cancelledBy === 'notification',
    ignores:
      'Nothing comes. A response that crossed the cancel on its way would be for an id it has forgotten.',
    async play({ wire, lines, driven, ended }) {
      await wire.notifyCancelled();
      lines.push('→ notifications/cancelled {requestId: 1}');
      await ended();
      driven.client.complete({ balance: 7 }, 'task_1');
      lines.push('· the task ends with a result');
    },
  },
  {
    name: 'HTTP stream closed',
    fits: ({ isHttp }) => isHttp,
    ignores: 'Nothing can come: the stream is closed. What it wants to know it asks anew, with the same key.',
    async play({ leg, wire, lines, driven, ended }) {
      wire.closeStream();
      lines.push('→ closes the response stream');
      // In a session the request outlives its connection: it is answered, and nobody hears it.
      if (leg.cancelledBy !== 'notification') await ended();
      driven.client.complete({ balance: 7 }, 'task_1');
      lines.push('· the task ends with a result');
    },
  },
  {
    name: 'a posted cancel does nothing',
    fits: ({ isHttp, cancelledBy }) => isHttp && cancelledBy !== 'notification',
    ignores:
      'The empty acknowledgement of its own notification. The response is for a request still open, and it reads it.',
    async play({ wire, lines, driven, hear }) {
      await wire.notifyCancelled();
      lines.push('→ POST notifications/cancelled {requestId: 1}, on a connection of its own');
      driven.client.complete({ balance: 7 }, 'task_1');
      lines.push('· the task ends with a result');
      await hear(2);
    },
  },
  {
    name: 'completion wins',
    fits: () => true,
    ignores: 'Nothing: it has its response. Its late cancel gets no answer.',
    async play({ leg, wire, lines, driven, hear }) {
      driven.client.complete({ balance: 7 }, 'task_1');
      lines.push('· the task ends with a result');
      await hear(2);
      const isNotified = leg.cancelledBy === 'notification';
      if (isNotified) await wire.notifyCancelled();
      else wire.closeStream();
      lines.push(isNotified ? '→ notifications/cancelled {requestId: 1}' : '→ closes the response stream');
    },
  },
  {
    name: 'progress, then the maximum timeout',
    fits: () => true,
    ignores: 'Nothing: the response is the task’s handle. Progress of the task goes on without it.',
    async play({ clock, lines, driven, hear }) {
      clock.pass(1_400);
      driven.client.move({ statusMessage: 'half way' }, 'task_1');
      lines.push('· 1,400 ms: progress, which resets the idle limit of 1,500 ms');
      await hear(2);
      clock.pass(599);
      driven.client.move({ statusMessage: 'nearly there' }, 'task_1');
      lines.push('· 1,999 ms: progress, which does not save the maximum of 2,000 ms');
      await hear(3);
      clock.pass(1);
      lines.push('· 2,000 ms: over');
      await hear(4);
      driven.client.move({ statusMessage: 'told to nobody' }, 'task_1');
      lines.push('· the task tells more');
    },
  },
];

export async function raceTranscripts(): Promise<Transcript[]> {
  const transcripts: Transcript[] = [];
  for (const leg of LEGS)
    for (const race of RACES) if (race.fits(leg)) transcripts.push(await transcriptOf(leg, race));
  return transcripts;
}

async function transcriptOf(leg: Leg, race: Race): Promise<Transcript> {
  const clock = new HandDrivenClock();
  const end = deferred<RequestEnd>();
  const driven = drivenGateway({ limits: LIMITS, clock, requestEnded: end.resolve });
  const lines = [
    `→ tools/call ${CALL.params.name}, id 1, progressToken ${JSON.stringify(CALL.meta.progressToken)}`,
  ];
  const wire = await leg.call(driven.gateway, CALL);
  const hear = async (count: number): Promise<void> => {
    const before = lines.filter((line) => line.startsWith('←')).length;
    while (wire.received.length < count) await wire.next();
    lines.push(...wire.received.slice(before, count).map((message) => `← ${wordsFor(message)}`));
  };
  try {
    await hear(1);
    await waitOpened(driven);
    await race.play({ leg, wire, clock, driven, lines, hear, ended: () => end.promise });
    const terminal = stateWords(await end.promise);
    await driven.gateway.close(); // whatever was still to come has come
    const isSilent = lines.filter((line) => line.startsWith('←')).length === wire.received.length;
    const hasFinalResponse = wire.received.some(({ method }) => method === undefined);
    lines.push(isSilent ? '← nothing more' : `← ${wordsFor(wire.received.at(-1) as RpcResponse)}`);
    const { cancels, starts } = driven.client;
    const task = cancels.length > 0 ? 'given up with the request' : `untouched (${starts.length} started)`;
    const { ignores, name } = race;
    return {
      transport: leg.name,
      race: name,
      lines,
      terminal,
      hasFinalResponse,
      signal: signalOf(leg),
      ignores,
      task,
    };
  } finally {
    wire.close();
    await driven.gateway.close();
  }
}

/** The first progress goes out before the wait that hears of more. */
async function waitOpened({ client }: DrivenGateway): Promise<void> {
  for (let turns = 0; client.openWaits === 0; turns += 1) {
    if (turns === 10_000) throw new Error('the call does not wait for its task');
    await turn();
  }
}

function signalOf({ isHttp, cancelledBy }: Leg): string {
  switch (cancelledBy) {
    case 'notification':
      return `notifications/cancelled with the request’s id${isHttp ? ', in its session; a disconnect is no cancel' : ''}`;
    case 'closed stream':
      return 'the closed response stream, and nothing else';
    case 'nothing':
      return 'none: a disconnect is no cancel, and without a session a posted notification reaches no request';
    default:
      return cancelledBy satisfies never;
  }
}

function stateWords(end: RequestEnd): string {
  if (end.kind === 'left') return end.isCancel ? 'cancelled' : 'left, without a cancel';
  return end.after === null ? 'answered' : `answered, after the ${end.after} timeout`;
}

function wordsFor({ method, params, result, error }: RpcResponse): string {
  if (method !== undefined)
    return `${method} ${String(params?.['progress'])}, progressToken ${JSON.stringify(params?.['progressToken'])}: ${String(params?.['message'])}`;
  if (error !== undefined) return `error ${error.code}`;
  const content = (result?.['structuredContent'] ?? {}) as Record<string, unknown>;
  const { code } = content;
  return `result of id 1: ${JSON.stringify(code === undefined ? content : { code })}`;
}

export function transcriptsPage(transcripts: readonly Transcript[]): string {
  const parts = transcripts.map(
    ({
      transport,
      race,
      lines,
      terminal,
      hasFinalResponse,
      signal,
      ignores,
      task,
    }) => `## ${transport}: ${race}

\`\`\`
${lines.join('\n')}
\`\`\`

- Terminal state: ${terminal}.
- Final response: ${hasFinalResponse ? 'one' : 'none'}.
- The signal on this wire: ${signal}.
- The client ignores: ${ignores}
- Its task: ${task}.
`,
  );
  return `# Races about one request

Written by \`npm run races\`, which plays them against a gateway whose task and clock are driven by hand. \`→\` is sent by the
client, \`←\` by the gateway. The call changes nothing, so its task is given up with its request; any other task goes on (M5.3).

${parts.join('\n')}`;
}
