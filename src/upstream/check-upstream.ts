/** What each tool of a server gets from its configuration, in words, and what is missing (`holdfast upstream check`). */
import type {
  UpstreamAsk,
  UpstreamKey,
  UpstreamReads,
  UpstreamToolDefinition,
} from '../contract/upstream-definition.ts';
import { noteText } from './action/tool-notes.ts';
import type { UpstreamToolEntry } from './upstream-actions.ts';

export interface ToolReport {
  tool: string;
  name: string;
  effect: string;
  key: string;
  verifiedBy: string;
  lookedUpBy: string;
  undoneBy: string;
  approval: string;
  isOffered: boolean;
  /** Passed through without a record: it only reads. */
  isDirect: boolean;
  /** Why it is quarantined; empty where it is not. */
  wrong: string[];
  warnings: string[];
}

const NOTHING = '-';

export function reportOf(entry: UpstreamToolEntry): ToolReport {
  const { tool, displayName, definition, notes, isOffered, isDirect } = entry;
  const { effect = 'unsafe', key, verify, lookup, approval } = definition;
  return {
    tool: tool.name,
    name: displayName,
    effect,
    key: key === undefined ? NOTHING : keyIn(key),
    verifiedBy: verify === undefined || 'none' in verify ? NOTHING : asked(verify),
    lookedUpBy: lookup === undefined ? NOTHING : asked(lookup),
    undoneBy: effect === 'safe' ? NOTHING : undoneBy(definition),
    approval: approval === undefined ? NOTHING : (approval.when ?? 'always'),
    isOffered,
    isDirect,
    wrong: notes.defects.map(noteText),
    warnings: notes.warnings.map(noteText),
  };
}

function keyIn(key: UpstreamKey): string {
  if ('natural' in key) return 'natural';
  return (Object.entries(key)[0] ?? []).join(' ');
}

function undoneBy({ rollback }: UpstreamToolDefinition): string {
  if (rollback === undefined || 'outOfBand' in rollback) return 'a person';
  if ('none' in rollback) return 'nobody';
  const ways = 'ways' in rollback ? rollback.ways : [rollback];
  return namesOf(
    ways.flatMap(({ tool, steps = [] }) => [...(tool === undefined ? [] : [{ tool }]), ...steps]),
  );
}

const asked = ({ tool, reads = {} }: UpstreamReads): string => tool ?? namesOf(Object.values(reads));

const namesOf = (asks: UpstreamAsk[]): string =>
  [...new Set(asks.map(({ tool }) => tool))].join(', ') || 'the arguments';
