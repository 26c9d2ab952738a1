/** A driven gateway on this process's stdio; argument: its limits as JSON. SIGTERM shuts it down. */
import type { GatewayLimits } from '../../src/gateway/index.ts';
import { drivenGateway } from './driven-gateway.ts';

const limits = JSON.parse(process.argv[2] ?? '{}') as Partial<GatewayLimits>;
const { gateway } = drivenGateway({ limits });
process.once('SIGTERM', () => void gateway.close());
await gateway.serveMcpStdio().closed;
await gateway.close();
