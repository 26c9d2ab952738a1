/** A server behind the seam, driven by hand: what each tool does is a function, and every call is on record. */
import type { RemoteServer } from '../../src/contract/remote-server.ts';
import type { JsonObject } from '../../src/task/json.ts';
import type { Upstream, UpstreamCall, UpstreamReply, UpstreamTool } from '../../src/upstream/upstream.ts';

type Behaviour = (args: JsonObject, call: UpstreamCall) => UpstreamReply | Promise<UpstreamReply>;

export const answers = (text: string, structured: JsonObject | null = null): UpstreamReply =>
  answerOf(text, structured, false);
export const failsWith = (text: string): UpstreamReply => answerOf(text, null, true);

function answerOf(text: string, structured: JsonObject | null, isError: boolean): UpstreamReply {
  const content = [{ type: 'text', text }];
  const raw = {
    content,
    ...(structured !== null && { structuredContent: structured }),
    ...(isError && { isError }),
  };
  return { kind: 'answer', isError, content, structured, raw };
}

export class HandDrivenUpstream implements Upstream {
  readonly identity: string;
  readonly calls: UpstreamCall[] = [];
  listed: UpstreamTool[];
  /** By tool; one that is not here is refused as unknown. */
  behaviours: Record<string, Behaviour> = {};
  readonly remote: RemoteServer = {
    status: () => Promise.reject(new Error('no remote tasks here')),
    cancel: () => Promise.reject(new Error('no remote tasks here')),
    answer: () => Promise.reject(new Error('no remote tasks here')),
  };

  constructor(identity: string, listed: UpstreamTool[] = []) {
    this.identity = identity;
    this.listed = listed;
  }

  tools(): Promise<UpstreamTool[]> {
    return Promise.resolve(structuredClone(this.listed));
  }

  async call(call: UpstreamCall): Promise<UpstreamReply> {
    this.calls.push(call);
    if (call.signal.aborted) return { kind: 'not_sent', message: 'aborted before it was sent' };
    const behaviour = this.behaviours[call.tool];
    if (behaviour === undefined)
      return { kind: 'refused', code: -32_602, message: `unknown tool ${call.tool}` };
    return structuredClone(await behaviour(structuredClone(call.args), call));
  }

  sent(tool: string): JsonObject[] {
    return this.calls.filter((call) => call.tool === tool).map(({ args }) => args);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

/** The file tools of a server as people have them: writing says nothing, reading what is missing is an error. */
export function fileTools(): UpstreamTool[] {
  const path = { type: 'string', description: 'where' };
  const object = (properties: JsonObject, required: string[]): JsonObject => ({
    type: 'object',
    properties,
    required,
  });
  return [
    {
      name: 'write_file',
      description: 'Writes a file.',
      inputSchema: object({ path, content: { type: 'string' } }, ['path', 'content']),
    },
    { name: 'read_file', description: 'Reads a file.', inputSchema: object({ path }, ['path']) },
    {
      name: 'move_file',
      inputSchema: object({ source: path, destination: path }, ['source', 'destination']),
    },
  ];
}

export class Files extends HandDrivenUpstream {
  readonly files = new Map<string, string>();

  constructor(identity = 'files') {
    super(identity, fileTools());
    this.behaviours = {
      write_file: ({ path, content }) => {
        this.files.set(path as string, content as string);
        return answers('ok');
      },
      read_file: ({ path }) => {
        const content = this.files.get(path as string);
        return content === undefined ? failsWith('ENOENT: no such file') : answers(content);
      },
      move_file: ({ source, destination }) => {
        const content = this.files.get(source as string);
        if (content === undefined) return failsWith('ENOENT: no such file');
        this.files.delete(source as string);
        this.files.set(destination as string, content);
        return answers('moved');
      },
    };
  }
}
