/** The known name that was most likely meant, or null where none is near. */
export function closestName(given: string, known: readonly string[]): string | null {
  const [nearest] = known
    .map((name) => ({ name, distance: distanceOf(given.toLowerCase(), name.toLowerCase()) }))
    .sort((one, other) => one.distance - other.distance);
  const bound = Math.min(Math.max(2, Math.floor(given.length / 3)), given.length - 1);
  return nearest !== undefined && nearest.distance <= bound ? nearest.name : null;
}

/** Levenshtein's. */
function distanceOf(one: string, other: string): number {
  let row = Array.from({ length: other.length + 1 }, (_, index) => index);
  for (const [at, char] of [...one].entries()) {
    const next = [at + 1];
    for (let index = 1; index <= other.length; index += 1) {
      const replaced = (row[index - 1] ?? 0) + (other[index - 1] === char ? 0 : 1);
      next.push(Math.min(replaced, (row[index] ?? 0) + 1, (next[index - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row.at(-1) ?? 0;
}
