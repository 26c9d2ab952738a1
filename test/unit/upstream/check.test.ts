import { expect, test } from 'vitest';
import { writeServer } from '../../../src/cli/upstream-lines.ts';
import type {
  UpstreamDefinition,
  UpstreamToolDefinition,
} from '../../../src/contract/upstream-definition.ts';
import { reportOf } from '../../../src/upstream/check-upstream.ts';
import { compileUpstream } from '../../../src/upstream/upstream-actions.ts';
import { BeforeInMemory } from '../../support/before-in-memory.ts';
import { Files } from '../../support/hand-driven-upstream.ts';

const read = { tool: 'read_file', args: { path: 'args.path' } };
const undone = {
  rollback: { tool: 'move_file', args: { source: 'args.path', destination: '"old/" + args.path' } },
  verifyRollback: { ...read, verified: 'answer.isError' },
};

function reports(definition: UpstreamDefinition) {
  const upstream = new Files();
  const source = {
    name: 'files',
    definition: { command: 'x', ...definition },
    upstream,
    before: new BeforeInMemory(),
  };
  return compileUpstream(source, upstream.listed).tools.map(reportOf);
}

function printed(tools: Record<string, UpstreamToolDefinition>): string[] {
  const lines: string[] = [];
  const terminal = { width: 80, write: (line: string) => void lines.push(line), paint: plain };
  writeServer(terminal, { server: 'files', wrong: [], tools: reports({ safe: ['read_file'], tools }) });
  return lines;
}
const plain = (_style: unknown, text: string): string => text;

test('[M8.1] the table of `holdfast upstream check` says what each tool gets, within 80 columns', () => {
  const lines = printed({
    write_file: {
      as: 'write_a_file_whose_name_is_longer_than_a_column_of_the_table',
      effect: 'conditional',
      key: { natural: 'the same content twice is the same file, however often it is written' },
      verify: { ...read, verified: '!answer.isError && answer.text == args.content' },
      lookup: { ...read, applied: '!answer.isError && answer.text == args.content' },
      approval: { when: 'args.path.startsWith("/very/long/folder/name") || args.content.size() > 10' },
      ...undone,
    },
  });
  expect(lines.slice(0, 5)).toEqual([
    'files',
    expect.stringMatching(/^TOOL +EFFECT +KEY +VERIFIED +LOOK-UP +UNDONE +APPROVAL$/),
    expect.stringMatching(
      /^write_a_file_w\S*… +conditional +natural +read_f\S*… +read_f\S*… +move_file +args\.p\S*…$/,
    ),
    expect.stringMatching(/^files__move_file +unsafe +- +- +- +a person +-$/),
    'only read, passed through: files__read_file',
  ]);
  for (const line of lines.slice(0, 4)) expect(line.length).toBeLessThanOrEqual(80);
});

test('[M1.1] below the table stands what is wrong, CEL with the position of the error, and what is missing', () => {
  const lines = printed({
    write_file: {
      effect: 'conditional',
      key: { argument: 'requestId' },
      verify: { ...read, verified: 'answer.text == args.contents' },
      rollback: undone.rollback,
    },
    move_file: {
      rollback: { tool: 'move_file', args: { source: 'args.destination', destination: 'args.source' } },
    },
  });
  const about = (tool: string, what: string) =>
    lines.filter((line) => line.startsWith(what) && line.includes(tool));
  expect(about('files__write_file', 'wrong')).toEqual([
    expect.stringContaining('key.argument: the key goes nowhere: write_file takes no argument requestId'),
    expect.stringMatching(/verify\.verified \(at \d+\): .*contents/),
  ]);
  expect(about('files__move_file', 'wrong')).toEqual([expect.stringContaining('verifyRollback')]);
  expect(about('files__move_file', 'warning')).toEqual(
    expect.arrayContaining([expect.stringContaining('verify: nothing reads the effect back')]),
  );
});

test('[S7.4] that a cancel undoes is by default asked only of tools that can be undone', () => {
  const found = (tools: Record<string, UpstreamToolDefinition>) =>
    reports({ safe: ['read_file'], defaults: { onCancel: 'rollback' }, tools });
  expect(found({ write_file: undone }).map(({ wrong }) => wrong)).toEqual([[], [], []]);
  const [own] = found({ write_file: { onCancel: 'rollback' } });
  expect(own?.wrong).toEqual([expect.stringContaining('onCancel')]);
  const upstream = new Files();
  const definition: UpstreamDefinition = {
    ...{ command: 'x', safe: ['read_file'], defaults: { onCancel: 'rollback' } },
    tools: { write_file: undone },
  };
  const { tools } = compileUpstream(
    { name: 'files', definition, upstream, before: new BeforeInMemory() },
    upstream.listed,
  );
  const cancelled = tools.map(({ tool, action }) => [tool.name, action?.contract.onCancel]);
  expect(Object.fromEntries(cancelled)).toMatchObject({ write_file: 'rollback', move_file: 'keep' });
});
