/** `npm run races`: plays every race about one request on every transport, prints it, and keeps it in docs/evidence/races.md. */
import { writeFileSync } from 'node:fs';
import { raceTranscripts, transcriptsPage } from '../test/races/race-transcripts.ts';

const page = transcriptsPage(await raceTranscripts());
writeFileSync(new URL('../docs/evidence/races.md', import.meta.url), page);
console.log(page);
