/** Whether the configured build of a versioned fleet gets work: one that is not current gets none, and says nothing. */
import { isGrpcServiceError } from '@temporalio/client';
import type { Connection } from '@temporalio/client';
import type { Config } from '../../worker/index.ts';
import type { Finding } from './doctor.ts';

/** gRPC's code for it. */
const NOT_FOUND = 5;

export async function examineDeployment(
  connection: Connection,
  namespace: string,
  { name, buildId }: NonNullable<Config['deployment']>,
): Promise<Finding> {
  const check = 'deployment';
  const described = await connection.workflowService
    .describeWorkerDeployment({ namespace, deploymentName: name })
    .catch((error: unknown) => {
      if (isGrpcServiceError(error) && error.code === NOT_FOUND) return null;
      throw error;
    });
  if (described === null)
    return {
      check,
      verdict: 'warning',
      found: `no worker of ${name} was ever seen: calls wait`,
      fix: 'start `holdfast worker`, then make its build current',
    };
  const current = described.workerDeploymentInfo?.routingConfig?.currentDeploymentVersion?.buildId;
  if (current === buildId)
    return { check, verdict: 'ok', found: `build ${buildId} of ${name} is current`, fix: null };
  return {
    check,
    verdict: 'warning',
    found: current
      ? `build ${buildId} of ${name} gets no new task: ${current} is current`
      : `no build of ${name} is current: calls wait`,
    fix: `temporal worker deployment set-current-version --deployment-name ${name} --build-id ${buildId}`,
  };
}
