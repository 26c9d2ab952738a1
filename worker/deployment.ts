/**
 * Temporal's worker versioning: which build may work on which task (S3.3).
 *
 * `auto-upgrade`: a task goes on with whatever build is current, which must replay what earlier ones recorded; Holdfast's
 * own workflow code is proven to, by the recorded histories of every release. `pinned`: it stays with the build that
 * started it, whose workers must then run until its last task has ended.
 */
import type { WorkerDeploymentOptions } from '@temporalio/worker';

export interface Deployment {
  name: string;
  buildId: string;
  versioning: 'auto-upgrade' | 'pinned';
}

export function deploymentOptions({ name, buildId, versioning }: Deployment): WorkerDeploymentOptions {
  return {
    version: { deploymentName: name, buildId },
    useWorkerVersioning: true,
    defaultVersioningBehavior: versioning === 'pinned' ? 'PINNED' : 'AUTO_UPGRADE',
  };
}
