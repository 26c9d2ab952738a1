/** What calls Holdfast, in a process of its own that stops where a test wants it killed: a gateway, or a bare client. */
import { Client, Connection } from '@temporalio/client';
import { HoldfastClient, deriveHmacKey, parseEncryptionKeys } from '../../src/client/index.ts';
import type { StartRequest } from '../../src/client/index.ts';
import { createGateway, toolOf } from '../../src/gateway/index.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { createLogger, dataConverterOf } from '../../worker/index.ts';
import type { Reached } from './child-messages.ts';
import { faultActions } from './fault-actions.ts';
import { Stops, childOptions, onOrders, tell } from './in-child.ts';
import type { CallerProcessOptions } from './worker-options.ts';

const options = childOptions<CallerProcessOptions>();
const stops = new Stops(options.stop);
const encryptionKeys =
  options.encryptionKeys === undefined ? [] : parseEncryptionKeys(options.encryptionKeys);
const actions = faultActions({ withSecrets: encryptionKeys.length > 0 });
const temporal = new Client({
  connection: await Connection.connect({ address: options.address }),
  namespace: options.namespace,
  dataConverter: dataConverterOf(encryptionKeys),
});
const client = new HoldfastClient({
  temporal,
  ledger: stoppingAfterReserve(await openLedger({ url: options.ledgerUrl })),
  actions,
  taskQueue: options.taskQueue,
  hmacKey: deriveHmacKey(encryptionKeys),
});

function stoppingAfterReserve(ledger: Ledger): Ledger {
  const reserve: Ledger['reserve'] = async (request) => {
    const answer = await ledger.reserve(request);
    const taskId = 'taskId' in answer ? answer.taskId : answer.row.taskId;
    await stops.reach(placeOf('after_reserve', { taskId, operationId: request.operationId }));
    return answer;
  };
  return { ...ledger, reserve };
}

function placeOf(
  point: Reached['point'],
  { taskId, operationId }: { taskId: string; operationId: string },
): Reached {
  return { point, taskId, operationId, attempt: 0 };
}

onOrders(async (order) => {
  if (order.order === 'goOn') return stops.goOn();
  if (order.order !== 'start') throw new Error(`a caller does not ${order.order}`);
  const answer = await client.start(order.request as StartRequest);
  await stops.reach(placeOf('before_answer', answer));
  return answer;
});

const data: Record<string, string> = {};
if (options.gateway) {
  const gateway = createGateway({
    client,
    tools: actions.map(({ contract }) => toolOf(contract)),
    auth: { kind: 'loopback', principal: { tenant: 'local', subject: 'tester', roles: [] } },
    limits: { blockingMs: options.gateway.blockingMs },
    log: createLogger({ level: 'debug' }),
    beforeAnswer: (answer) => stops.reach(placeOf('before_answer', answer)),
  });
  data['url'] = `${(await gateway.serveHttp({ port: 0 })).url}/mcp`;
}
tell({ notice: 'ready', data });
