/**
 * The deed: content is staged beside, what the file held is kept beside, then one rename brings the effect about.
 *
 * Files of an operation, in `.holdfast-operations/`:
 *   <operationId>.next    the new content, staged; the rename that is the effect takes it away
 *   <operationId>.before  what the file held; never replaced by what the operation itself wrote
 * So whatever crashes where: `.before` without `.next` means applied, everything else means not applied (lookup).
 */
import { createHash } from 'node:crypto';
import {
  ActionFailure,
  applied,
  fails,
  holds,
  implementAction,
  mismatch,
  notApplied,
  verified,
} from '../../src/index.ts';
import { writeFile } from './actions.ts';
import { ConfinedFolder, PathRefused, contentOf, moveTo, place, remove, stage } from './confined-folder.ts';

interface Before {
  sha256: string | null;
  /** Base64; null where there was no file. */
  content: string | null;
}

const folder = () => ConfinedFolder.open(process.env['HOLDFAST_FILES_ROOT'] ?? '.holdfast/files');

export const write = implementAction(writeFile, {
  async precondition({ path, ifSha256 }) {
    try {
      const held = hashOf(await contentOf(await (await folder()).locate(path)));
      if (ifSha256 === undefined || ifSha256 === held) return holds();
      return fails(held === null ? `${path} does not exist` : `${path} holds ${held}`);
    } catch (error) {
      if (error instanceof PathRefused) return fails(error.message);
      throw error;
    }
  },

  async execute({ path, content }, context) {
    const root = await folder();
    const at = await located(root, path);
    const [next, kept] = [root.own(`${context.operationId}.next`), root.own(`${context.operationId}.before`)];
    const bytes = Buffer.from(content, 'utf8');
    await stage(bytes, next);
    const before = await keepBefore(await contentOf(at), sha256Of(bytes), kept);
    await context.assertOwner();
    await moveTo(next, at);
    return { path, sha256: sha256Of(bytes), bytes: bytes.length, previousSha256: before.sha256 };
  },

  async lookup({ operationId, input }) {
    const root = await folder();
    const before = await readBefore(root.own(`${operationId}.before`));
    if (before === null || (await contentOf(root.own(`${operationId}.next`))) !== null) return notApplied();
    const bytes = Buffer.from(input.content, 'utf8');
    return applied({
      path: input.path,
      sha256: sha256Of(bytes),
      bytes: bytes.length,
      previousSha256: before.sha256,
    });
  },

  async verify({ path }, { sha256 }) {
    const held = await heldAt(await folder(), path);
    return held === sha256 ? verified() : mismatch(`${path} holds ${held ?? 'nothing'}, not ${sha256}`);
  },

  async rollback({ path }, { sha256 }, context) {
    const root = await folder();
    const before = await beforeOf(root, context.originalOperationId);
    const at = await located(root, path);
    const held = hashOf(await contentOf(at));
    if (held === before.sha256) return; // restored by an earlier attempt
    if (held !== sha256)
      throw ActionFailure.permanent(`${path} was changed by somebody else since; left as it is`);
    await context.assertOwner();
    if (before.content === null) await remove(at);
    else await place(Buffer.from(before.content, 'base64'), at, root.own(`${context.operationId}.next`));
  },

  async verifyRollback({ path }, _result, context) {
    const root = await folder();
    const before = await beforeOf(root, context.originalOperationId);
    const held = await heldAt(root, path);
    return held === before.sha256
      ? verified()
      : mismatch(`${path} holds ${held ?? 'nothing'}, not what it held before`);
  },
});

/**
 * Keeps what the file holds now, unless an earlier attempt kept it and the file still holds that, or holds our own
 * content already. Written under another name first: half of it is never taken for the whole.
 */
async function keepBefore(held: Buffer | null, ours: string, kept: string): Promise<Before> {
  const earlier = await readBefore(kept);
  if (earlier !== null && [earlier.sha256, ours].includes(hashOf(held))) return earlier;
  const before: Before = { sha256: hashOf(held), content: held?.toString('base64') ?? null };
  await place(Buffer.from(JSON.stringify(before)), kept, `${kept}.unfinished`);
  return before;
}

async function readBefore(kept: string): Promise<Before | null> {
  const text = await contentOf(kept);
  return text === null ? null : (JSON.parse(text.toString('utf8')) as Before);
}

async function beforeOf(root: ConfinedFolder, operationId: string): Promise<Before> {
  const before = await readBefore(root.own(`${operationId}.before`));
  if (before === null) throw ActionFailure.permanent(`what the file held before ${operationId} is not kept`);
  return before;
}

/** A refused path is refused for good, and before anything was done. */
async function located(root: ConfinedFolder, path: string): Promise<string> {
  return await root.locate(path).catch((error: unknown) => {
    throw error instanceof PathRefused ? ActionFailure.permanent(error.message) : error;
  });
}

/** The hash of what the file holds; of a path that is none of ours any more, why. Null: no file. */
async function heldAt(root: ConfinedFolder, path: string): Promise<string | null> {
  try {
    return hashOf(await contentOf(await root.locate(path)));
  } catch (error) {
    if (error instanceof PathRefused) return `(${error.message})`;
    throw error;
  }
}

const hashOf = (content: Buffer | null): string | null => (content === null ? null : sha256Of(content));

const sha256Of = (content: Buffer): string => createHash('sha256').update(content).digest('hex');
