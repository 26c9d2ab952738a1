/** Where an upstream server is, and what of that must never be shown. */
import { scrub } from '../../contract/redact.ts';
import { keptText } from '../../contract/text.ts';
import { LIMITS } from '../../contract/limits.ts';
import type { ServerCommand } from './server-process.ts';

export interface ServerUrl {
  url: string;
  /** With every request; their values are secrets. */
  headers?: Readonly<Record<string, string>>;
}

export type UpstreamAddress = (ServerCommand | ServerUrl) & {
  /** What of it came from the environment, wherever it stands: in arguments, say. */
  secrets?: readonly string[];
  /** It prints what it is called with, maybe, and some of that is sensitive: its stderr is not shown. */
  hidesStderr?: boolean;
};

export interface UpstreamTimeouts {
  /** Start of a process or connection with its handshake. */
  openMs: number;
  /** One request that is no call: a page of the list, a task's status. */
  controlMs: number;
  /** Each of the two spans in which a process is asked to end, before it is killed. */
  closeMs: number;
}

export const UPSTREAM_TIMEOUTS: UpstreamTimeouts = { openMs: 30_000, controlMs: 30_000, closeMs: 2_000 };

/** Takes the secrets of `address` out of a text that others wrote, and cuts it to what is kept of a failure. */
export function cleanerOf(address: UpstreamAddress): (text: string) => string {
  const secrets = secretsOf(address);
  return (text) => keptText(scrub(text, secrets), LIMITS.failureMessageLengthMax.value);
}

/** Shorter ones say nothing and would blot out ordinary words. */
const SECRET_LENGTH_LEAST = 3;

function secretsOf(address: UpstreamAddress): string[] {
  const texts = 'url' in address ? secretsOfUrl(address) : Object.values(address.env ?? {});
  return [...new Set([...texts, ...(address.secrets ?? [])])]
    .filter((text) => text.length >= SECRET_LENGTH_LEAST)
    .sort((a, b) => b.length - a.length);
}

/** Headers, each also without its scheme (`Bearer`); user, password and parameters of the address. */
function secretsOfUrl({ url, headers = {} }: ServerUrl): string[] {
  const values = Object.values(headers).flatMap((value) => [value, value.replace(/^\S+\s+/, '')]);
  if (!URL.canParse(url)) return [...values, url];
  const { username, password, searchParams } = new URL(url);
  return [...values, username, password, ...searchParams.values()];
}
