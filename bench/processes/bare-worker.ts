/** The worker of the bare workflows as a process of its own; the environment is the system's (system.ts). */
import { loadConfig, openHoldfast } from '../../worker/index.ts';
import { startBareWorker } from '../system.ts';

const config = await loadConfig();
// A Holdfast worker comes along on a queue of its own where nothing is ever asked of it: Holdfast's has the same company.
const holdfast = await openHoldfast({ config: { ...config, taskQueue: 'nobody' }, worker: true });
await startBareWorker(holdfast, config);
process.send?.({ ready: true });
process.once('disconnect', () => process.exit(0));
