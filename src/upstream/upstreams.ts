/**
 * All configured servers of one process, and what they offer together. No name is two actions: what comes later, and
 * whatever is named like an action of the user's own, is quarantined (M8.2).
 *
 * 1. What clients are shown names one tool: it is nobody else's shown name, and no other action's in the ledger.
 * 2. An action that was there stays findable while its tool no longer fits its configuration: its tasks run on (M8.5).
 */
import { HoldfastError } from '../contract/error.ts';
import type { Action } from '../contract/implement-action.ts';
import type { RemoteServers } from '../contract/remote-server.ts';
import { quarantineOf } from './upstream-actions.ts';
import type { UpstreamToolEntry } from './upstream-actions.ts';
import type { Upstream } from './upstream.ts';
import type { UpstreamServer } from './upstream-server.ts';

/** A tool that clients are offered. */
export interface OfferedTool {
  action: Action;
  displayName: string;
  /** The server's own schema, nothing changed. */
  entry: UpstreamToolEntry;
  /** Null where this process has no line to its server. */
  line: Upstream | null;
}

export interface UpstreamProblem {
  server: string;
  /** Null: about the server as a whole. */
  tool: string | null;
  error: HoldfastError;
}

export interface UpstreamsOptions {
  servers: readonly UpstreamServer[];
  /** Names of the user's own actions and procedures. */
  taken: readonly string[];
  /** Whether sensitive fields can be kept out of the ledger: there is an encryption key. */
  hasKey: boolean;
}

export class Upstreams {
  readonly servers: readonly UpstreamServer[];
  readonly #options: UpstreamsOptions;
  readonly #listeners = new Set<() => void>();
  readonly #closers: (() => void)[] = [];
  #actions = new Map<string, Action>();
  #offered: OfferedTool[] = [];
  #problems: UpstreamProblem[] = [];

  constructor(options: UpstreamsOptions) {
    this.#options = options;
    this.servers = options.servers;
    this.gather();
  }

  /** By the ledger's name; tools that are not offered included, since running tasks need them. */
  readonly find = (action: string): Action | undefined => this.#actions.get(action);

  /** By what clients are shown, for people who type it; else the name itself. */
  actionOf(name: string): string {
    return this.#offered.find(({ displayName }) => displayName === name)?.action.contract.name ?? name;
  }

  get offered(): readonly OfferedTool[] {
    return this.#offered;
  }

  get problems(): readonly UpstreamProblem[] {
    return this.#problems;
  }

  readonly remotes: RemoteServers = (identity) =>
    this.servers.find((server) => server.identity === identity)?.line?.remote;

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Anew from what each server is known by. */
  gather(): void {
    const before = this.#actions;
    this.#actions = new Map();
    this.#problems = [];
    const shown = this.servers.flatMap((server) => this.#take(server, before));
    this.#offered = [];
    // Once every action is there: a name that is shown must be none of the later ones either.
    for (const { server, tool } of shown) {
      const error = this.#reasonAgainstName(tool);
      if (error === null) this.#offered.push(tool);
      else this.#problems.push({ server, tool: tool.entry.tool.name, error });
    }
    for (const listener of this.#listeners) listener();
  }

  onClose(work: () => void): void {
    this.#closers.push(work);
  }

  async close(): Promise<void> {
    for (const work of this.#closers.splice(0)) work();
    await Promise.all(this.servers.map((server) => server.close()));
  }

  /** What of it is shown, if the names allow. */
  #take(
    { name, line, compiled, problem }: UpstreamServer,
    before: ReadonlyMap<string, Action>,
  ): { server: string; tool: OfferedTool }[] {
    const shown: { server: string; tool: OfferedTool }[] = [];
    const report = (tool: string | null, error: HoldfastError): void => {
      this.#problems.push({ server: name, tool, error });
    };
    if (problem !== null) report(null, problem);
    for (const { tool, message } of compiled?.problems ?? [])
      report(tool, refused(`${name}: ${tool}: ${message}.`, tool));
    for (const entry of compiled?.tools ?? []) {
      const error = quarantineOf(entry) ?? this.#reasonAgainst(entry);
      if (error !== null) {
        report(entry.tool.name, error);
        const last = before.get(entry.actionName) ?? entry.fallback;
        if (entry.action === null && last !== null) this.#actions.set(entry.actionName, last);
        continue;
      }
      const action = entry.action as Action;
      this.#actions.set(entry.actionName, action);
      if (entry.isOffered && problem?.code !== 'invalid_configuration')
        shown.push({ server: name, tool: { action, displayName: entry.displayName, entry, line } });
    }
    return shown;
  }

  #reasonAgainstName({ displayName, entry: { actionName } }: OfferedTool): HoldfastError | null {
    const isTaken =
      this.#options.taken.includes(displayName) ||
      (displayName !== actionName && this.#actions.has(displayName)) ||
      this.#offered.some((other) => other.displayName === displayName);
    if (!isTaken) return null;
    return refused(
      `${actionName} can not be shown as ${displayName}: another tool has that name. Set \`as\`, or rename the other.`,
      actionName,
    );
  }

  #reasonAgainst({ actionName, action }: UpstreamToolEntry): HoldfastError | null {
    if (this.#options.taken.includes(actionName) || this.#actions.has(actionName))
      return refused(
        `The name ${actionName} is taken: rename the other action, or set the server's identity.`,
        actionName,
      );
    const { input = [], output = [] } = action?.contract.sensitive ?? {};
    if (input.length + output.length === 0 || this.#options.hasKey) return null;
    return new HoldfastError(
      'encryption_key_required',
      `${actionName} has sensitive fields, and HOLDFAST_ENCRYPTION_KEY is not set.`,
      { details: { tool: actionName } },
    );
  }
}

const refused = (message: string, tool: string): HoldfastError =>
  new HoldfastError('invalid_contract', message, { details: { tool } });
