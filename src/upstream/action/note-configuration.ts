/** What of one tool's configuration does not go together, or leaves a promise open, told before the first call. */
import { childPointer, isUnder } from '../../contract/pointer.ts';
import { KEY_ARGUMENT } from '../../contract/wire-names.ts';
import type {
  UpstreamAsk,
  UpstreamReads,
  UpstreamToolDefinition,
} from '../../contract/upstream-definition.ts';
import type { UpstreamTool } from '../upstream.ts';
import { keyArgumentOf } from './key-argument.ts';
import { takesText } from './input-check.ts';
import type { ToolNotes } from './tool-notes.ts';
import { isOpen, propertiesOf, unknownArgument } from './tool-parts.ts';

export interface Configured {
  tool: UpstreamTool;
  definition: UpstreamToolDefinition;
  notes: ToolNotes;
}

/** Tools of the server that are declared to read only, and how the server is reached. */
export interface Surroundings {
  safeTools: ReadonlySet<string>;
  isHttp: boolean;
}

/** As long as any operation's id, and made of the same characters. */
const SAMPLE_ID = `op_${'a'.repeat(52)}`;

export function noteConfiguration(configured: Configured, { safeTools, isHttp }: Surroundings): void {
  noteKey(configured, isHttp);
  noteHints(configured);
  noteProofs(configured);
  noteReads(configured, safeTools);
}

function noteKey({ tool, definition, notes }: Configured, isHttp: boolean): void {
  const { key, effect = 'unsafe' } = definition;
  const properties = propertiesOf(tool.inputSchema);
  const keyArgument = keyArgumentOf(definition);
  const passes = key !== undefined && 'argument' in key ? key.argument : null;
  if (effect === 'conditional' && key === undefined)
    notes.refuse(
      'key',
      "a conditional tool needs one: who dedupes, if nobody is told the operation id? Declare it 'unsafe' otherwise",
    );
  if (passes !== null && !Object.hasOwn(properties, passes) && !isOpen(tool.inputSchema))
    notes.refuse(
      'key.argument',
      `the key goes nowhere: ${unknownArgument(tool.name, passes, Object.keys(properties))}`,
    );
  else if (passes !== null && !takesText(tool.inputSchema, passes, SAMPLE_ID))
    notes.refuse(
      'key.argument',
      `${passes} does not take an operation id (${SAMPLE_ID.length} characters of a–z, 2–7 and _)`,
    );
  if (
    keyArgument !== undefined &&
    definition.sensitive?.args?.some((one) => isUnder(childPointer('', keyArgument), one))
  )
    notes.refuse(
      'sensitive.args',
      `a key is kept in the ledger as it is: ${keyArgument} can not be sensitive`,
    );
  if (key !== undefined && 'header' in key && !isHttp)
    notes.refuse('key.header', 'the key goes nowhere: a server over stdio has no headers');
  if (effect !== 'safe' && passes !== KEY_ARGUMENT && Object.hasOwn(properties, KEY_ARGUMENT))
    notes.refuse(
      'key',
      `its argument ${KEY_ARGUMENT} is taken by Holdfast: pass the operation id in it with key: { argument: '${KEY_ARGUMENT}' }`,
    );
}

/** Hints are for display (S5.1); where they contradict the configuration, one of the two is wrong. */
function noteHints({ tool, definition, notes }: Configured): void {
  const { effect = 'unsafe', durable } = definition;
  if (
    effect === 'safe' &&
    (tool.annotations?.['readOnlyHint'] === false || tool.annotations?.['destructiveHint'] === true)
  )
    notes.warn('effect', 'declared safe, while the server says that the tool changes something');
  if (effect !== 'safe' && durable !== undefined)
    notes.warn('durable', 'of no meaning: every tool that is not safe is recorded');
}

function noteProofs({ definition, notes }: Configured): void {
  const { effect = 'unsafe', verify, lookup, rollback, before, sensitive, onCancel } = definition;
  if (effect === 'safe') return;
  if (verify === undefined || 'none' in verify)
    notes.warn('verify', 'nothing reads the effect back: a tool that answers and does nothing goes unseen');
  if (lookup === undefined)
    notes.warn(
      'lookup',
      effect === 'unsafe'
        ? 'missing: a call whose answer is lost waits for a person'
        : 'missing: a keyless call whose answer is lost waits for a person',
    );
  if (rollback === undefined && onCancel === 'rollback') return; // the contract refuses it
  if (rollback === undefined) notes.warn('rollback', 'missing: a person undoes it by hand');
  if (before !== undefined && sensitive?.args !== undefined)
    notes.warn(
      'before',
      'what is read before the effect is kept in the ledger as it is: see that it holds nothing sensitive',
    );
}

/** Whatever reads must change nothing: it is called again and again, whenever something is to be told. */
function noteReads({ definition, notes }: Configured, safeTools: ReadonlySet<string>): void {
  const { before = {}, precondition, lookup, verify, verifyRollback, rollback } = definition;
  const named = (field: string, reads: UpstreamReads | undefined): [string, string][] => [
    ...(reads?.tool === undefined ? [] : ([[field, reads.tool]] as [string, string][])),
    ...toolsOf(`${field}.reads`, reads?.reads ?? {}),
  ];
  const undoing = rollback !== undefined && 'reads' in rollback ? rollback.reads : undefined;
  const asked = [
    ...toolsOf('before', before),
    ...named('precondition', precondition),
    ...named('lookup', lookup),
    ...named('verify', verify === undefined || 'none' in verify ? undefined : verify),
    ...named('verifyRollback', verifyRollback),
    ...toolsOf('rollback.reads', undoing ?? {}),
  ];
  for (const [field, tool] of asked)
    if (!safeTools.has(tool)) notes.warn(field, `asks ${tool}, which is not declared safe`);
}

const toolsOf = (field: string, asks: Record<string, UpstreamAsk>): [string, string][] =>
  Object.entries(asks).map(([name, { tool }]) => [`${field}.${name}`, tool]);
