// @modelcontextprotocol/server-filesystem: files that are read back, and come back as they were.
import { defineConfig } from '../../../src/index.ts';

const file = { tool: 'read_text_file', args: { path: 'args.path' } };
/** The server tells a file that is not there only in words. */
const isMissing = (answer: string) => `(${answer}.isError && ${answer}.text.startsWith('ENOENT'))`;
/** The same content, or absent both times: an absent file answers the same words every time. */
const isSame = (one: string, other: string) =>
  `(${one}.isError == ${other}.isError && ${one}.text == ${other}.text)`;
/** It reads bytes that are no UTF-8 as U+FFFD: written back, they would be others. */
const isText = (answer: string) => `(!${answer}.isError && !${answer}.text.contains('\\uFFFD'))`;
const isWritten = '!answer.isError && answer.text == args.content';
/** The server's own words for a call that it did not begin. Of an output that does not fit it says -32602 too, afterwards. */
const NOT_BEGUN = [
  ...['Access denied', 'ENOENT', 'Parent directory does not exist', 'EISDIR'],
  'MCP error -32602: Input validation',
];
const wasRefused = (...more: string[]) =>
  [...NOT_BEGUN, ...more].map((words) => `result.text.startsWith('${words}')`).join(' || ');
/** The server can't delete: what must go is moved here, named by the operation that is undone. */
const TRASH = 'undone';
const toTrash = (path: string) => ({
  steps: [
    { tool: 'create_directory', args: { path: { value: TRASH } } },
    { tool: 'move_file', args: { source: path, destination: `'${TRASH}/' + operationId` } },
  ],
  remains: `'what was made stays as ${TRASH}/' + operationId`,
});

export default defineConfig({
  actions: [],
  upstreams: {
    files: {
      command: 'npx',
      // The last one is the only folder that the server may touch.
      args: ['-y', '@modelcontextprotocol/server-filesystem@2026.8.31', { env: 'FILES_ROOT' }],
      safe: ['read_*', 'list_*', 'directory_tree', 'search_files', 'get_file_info'],
      defaults: { deadlines: { attempt: '10s', settle: '5s' } },
      tools: {
        write_file: {
          effect: 'unsafe',
          onCancel: 'rollback',
          before: { old: file },
          precondition: {
            holds: `${isMissing('before.old')} || ${isText('before.old')}`,
            reason: 'what is there could not be put back: it is no text, or could not be read',
          },
          refused: wasRefused(),
          lookup: {
            ...file,
            applied: isWritten,
            // Half a file, which a server killed while it makes one leaves behind, is neither.
            notApplied: isSame('answer', 'before.old'),
            conclusive: true,
            result: { content: "'Wrote ' + args.path" },
          },
          verify: { ...file, verified: isWritten },
          rollback: {
            reads: { now: file },
            // Neither where somebody else wrote since: then a person is asked.
            ways: [
              {
                when: `before.old.isError && !reads.now.isError && reads.now.text == args.content`,
                ...toTrash('args.path'),
              },
              {
                when: `!before.old.isError && !reads.now.isError && reads.now.text == args.content`,
                tool: 'write_file',
                args: { path: 'args.path', content: 'before.old.text' },
              },
            ],
          },
          verifyRollback: { ...file, verified: isSame('answer', 'before.old') },
          approval: {
            when: "args.path.contains('.env') || args.content.size() > 10000",
            roles: ['operator'],
            expiresIn: '24h',
          },
        },
        edit_file: {
          effect: 'unsafe',
          onCancel: 'rollback',
          before: { old: file },
          precondition: {
            holds: `${isText('before.old')} && !(has(args.dryRun) && args.dryRun)`,
            reason: 'there is no such text file, or it was only a dry run',
          },
          refused: wasRefused('Could not find exact match'),
          // How the file must look now is the server's to say: only an untouched one is known for sure.
          lookup: {
            ...file,
            applied: 'false',
            notApplied: isSame('answer', 'before.old'),
            conclusive: true,
          },
          verify: {
            ...file,
            verified: '!answer.isError && answer.text != before.old.text',
          },
          rollback: { tool: 'write_file', args: { path: 'args.path', content: 'before.old.text' } },
          verifyRollback: { ...file, verified: isSame('answer', 'before.old') },
        },
        create_directory: {
          effect: 'unsafe',
          onCancel: 'rollback',
          before: { old: { tool: 'get_file_info', args: { path: 'args.path' } } },
          refused: wasRefused(),
          lookup: {
            tool: 'get_file_info',
            args: { path: 'args.path' },
            applied: "!answer.isError && answer.text.contains('isDirectory: true')",
            notApplied: isMissing('answer'),
            conclusive: true,
            result: { content: "'Made ' + args.path" },
          },
          verify: {
            tool: 'get_file_info',
            args: { path: 'args.path' },
            verified: "!answer.isError && answer.text.contains('isDirectory: true')",
          },
          rollback: {
            reads: { inside: { tool: 'list_directory', args: { path: 'args.path' } } },
            ways: [
              {
                when: "before.old.isError && !reads.inside.isError && reads.inside.text == ''",
                ...toTrash('args.path'),
              },
            ],
          },
          // There before, and there again: nothing was made, and nothing is taken away.
          verifyRollback: {
            tool: 'get_file_info',
            args: { path: 'args.path' },
            verified: `before.old.isError ? ${isMissing('answer')} : !answer.isError`,
          },
        },
        move_file: {
          effect: 'unsafe',
          onCancel: 'rollback',
          refused: wasRefused('Destination already exists'),
          precondition: {
            reads: {
              source: { tool: 'get_file_info', args: { path: 'args.source' } },
              destination: { tool: 'get_file_info', args: { path: 'args.destination' } },
            },
            holds: `!reads.source.isError && ${isMissing('reads.destination')}`,
            reason: 'the source is not there, or the destination is',
          },
          lookup: {
            reads: {
              source: { tool: 'get_file_info', args: { path: 'args.source' } },
              destination: { tool: 'get_file_info', args: { path: 'args.destination' } },
            },
            applied: `${isMissing('reads.source')} && !reads.destination.isError`,
            notApplied: `!reads.source.isError && ${isMissing('reads.destination')}`,
            conclusive: true,
            result: { content: "'Moved to ' + args.destination" },
          },
          verify: {
            reads: {
              source: { tool: 'get_file_info', args: { path: 'args.source' } },
              destination: { tool: 'get_file_info', args: { path: 'args.destination' } },
            },
            verified: `${isMissing('reads.source')} && !reads.destination.isError`,
          },
          rollback: {
            tool: 'move_file',
            args: { source: 'args.destination', destination: 'args.source' },
          },
          verifyRollback: {
            reads: {
              source: { tool: 'get_file_info', args: { path: 'args.source' } },
              destination: { tool: 'get_file_info', args: { path: 'args.destination' } },
            },
            verified: `!reads.source.isError && ${isMissing('reads.destination')}`,
          },
        },
      },
    },
  },
});
