/** How much something takes as JSON in UTF-8, which is what the engine's limits count. */

const known = new WeakMap<object, number>();

/** Of what is never changed: measured once. */
export function bytesOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return bytesIn(value);
  const measured = known.get(value) ?? bytesIn(value);
  known.set(value, measured);
  return measured;
}

function bytesIn(value: unknown): number {
  const text = JSON.stringify(value) ?? '';
  let bytes = text.length;
  for (let index = 0; index < text.length; index += 1) {
    const code = text.charCodeAt(index);
    // Each half of a surrogate pair is two of its four bytes.
    if (code > 0x7f) bytes += code > 0x7ff && (code < 0xd800 || code > 0xdfff) ? 2 : 1;
  }
  return bytes;
}
