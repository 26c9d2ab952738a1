/** What `holdfast doctor` looks at: each check says what was found, whether that is right, and what to do if not (S10.1). */
import type { Connection } from '@temporalio/client';
import { HoldfastError } from '../contract/error.ts';
import { openLedger } from '../ledger/open-ledger.ts';
import type { Ledger } from '../ledger/ledger.ts';
import type { Config } from '../../worker/index.ts';
import { examineDeployment } from './doctor-deployment.ts';
import type { GlobalOptions } from './program.ts';
import { examineUpstreams } from './doctor-upstreams.ts';
import { connectToTemporal, loadCommandConfig } from './session.ts';

export interface Finding {
  check: string;
  verdict: 'ok' | 'warning' | 'wrong' | 'unreachable';
  found: string;
  fix: string | null;
}

const DAY_MS = 86_400_000;
const ALERTS_COUNTED_MAX = 1_000;
/** temporal.api.enums.v1.TaskQueueType */
const WORKFLOW_QUEUE = 1;

export async function examine(options: GlobalOptions): Promise<Finding[]> {
  const config = await loadCommandConfig(options);
  const findings: Finding[] = [
    ok('configuration', `${config.actions.length} actions, ${config.configFile ?? 'no file'}`),
    encryption(config),
  ];
  findings.push(...(await examineLedger(config)), ...(await examineEngine(config)));
  findings.push(...(await examineUpstreams(config)));
  return findings;
}

function ok(check: string, found: string): Finding {
  return { check, verdict: 'ok', found, fix: null };
}

function encryption({ encryptionKeys }: Config): Finding {
  if (encryptionKeys.length > 0)
    return ok('encryption', `${encryptionKeys.length} key(s); histories are encrypted`);
  const fix =
    'set HOLDFAST_ENCRYPTION_KEY (openssl rand -base64 32) unless Temporal may read arguments and results';
  return { check: 'encryption', verdict: 'warning', found: 'no key: histories are plain text', fix };
}

async function examineLedger(config: Config): Promise<Finding[]> {
  let ledger: Ledger | null = null;
  try {
    ledger = await openLedger({ url: config.databaseUrl, mustExist: true });
    const { version } = await ledger.check();
    const store = ok('ledger', `${ledger.kind}, schema version ${version}`);
    const verdict = await ledger.verifyAudit();
    if (verdict.ok)
      return [
        store,
        ok('audit', `${verdict.entries} entries in ${verdict.tasks} chains, all intact`),
        await waiting(ledger, config),
        await alerts(ledger, config),
      ];
    const fix = 'keep the database as it is and find out who wrote to it';
    return [
      store,
      {
        check: 'audit',
        verdict: 'wrong',
        found: `task ${verdict.taskId}, entry ${verdict.seq}: ${verdict.reason}`,
        fix,
      },
    ];
  } catch (error) {
    return [fault('ledger', error, 'run `holdfast migrate`, and check HOLDFAST_DATABASE_URL')];
  } finally {
    await ledger?.close();
  }
}

async function waiting(ledger: Ledger, config: Config): Promise<Finding> {
  const rows = await ledger.list({ tenant: config.principal.tenant, state: 'attention' });
  if (rows.length === 0) return ok('waiting for people', 'none');
  return {
    check: 'waiting for people',
    verdict: 'warning',
    found: `${rows.length} task(s) in needs_attention`,
    fix: 'holdfast tasks --status needs_attention, then holdfast task show and resolve',
  };
}

/** What a person was to hear and has not (S9). */
async function alerts(ledger: Ledger, { principal: { tenant } }: Config): Promise<Finding> {
  const [dead, waiting] = await Promise.all(
    (['dead', 'waiting'] as const).map((state) =>
      ledger.alerts({ tenant, state, limit: ALERTS_COUNTED_MAX }),
    ),
  );
  const failing = waiting?.filter(({ lastError }) => lastError !== null) ?? [];
  const newest = dead?.[0] ?? failing[0];
  const found = `${dead?.length ?? 0} given up, ${waiting?.length ?? 0} waiting`;
  if (newest === undefined) return ok('alerts', found);
  return {
    check: 'alerts',
    verdict: 'warning',
    found: `${found}; alert ${newest.id} was not delivered: ${newest.lastError ?? 'no answer'}`,
    fix: 'make the receiver answer, then holdfast alerts retry --all',
  };
}

async function examineEngine(config: Config): Promise<Finding[]> {
  let connection: Connection | null = null;
  try {
    connection = await connectToTemporal(config);
    const { namespace } = config.temporal;
    const described = await connection.workflowService.describeNamespace({ namespace });
    const retentionMs = Number(described.config?.workflowExecutionRetentionTtl?.seconds ?? 0) * 1_000;
    return [
      ok('temporal', `namespace ${namespace}`),
      retention(retentionMs),
      await pollers(connection, config),
      ...(config.deployment === null
        ? []
        : [await examineDeployment(connection, namespace, config.deployment)]),
    ];
  } catch (error) {
    return [fault('temporal', error, 'start `holdfast dev`, or set TEMPORAL_ADDRESS and TEMPORAL_NAMESPACE')];
  } finally {
    await connection?.close();
  }
}

function retention(retentionMs: number): Finding {
  const days = retentionMs / DAY_MS;
  if (days >= 1)
    return ok('retention', `${days} day(s) of history; the ledger keeps identity and audit beyond that`);
  return {
    check: 'retention',
    verdict: 'warning',
    found: `${days} days`,
    fix: 'keep histories for at least a day: task show reads them',
  };
}

async function pollers(connection: Connection, config: Config): Promise<Finding> {
  const described = await connection.workflowService.describeTaskQueue({
    namespace: config.temporal.namespace,
    taskQueue: { name: config.taskQueue },
    taskQueueType: WORKFLOW_QUEUE,
  });
  const count = described.pollers?.length ?? 0;
  if (count > 0) return ok('workers', `${count} polling ${config.taskQueue}`);
  return {
    check: 'workers',
    verdict: 'warning',
    found: `nobody polls ${config.taskQueue}: calls wait`,
    fix: 'start `holdfast worker`',
  };
}

function fault(check: string, error: unknown, fix: string): Finding {
  if (!(error instanceof HoldfastError))
    return {
      check,
      verdict: 'unreachable',
      found: error instanceof Error ? error.message : String(error),
      fix,
    };
  const verdict = error.code === 'ledger_unsuitable' ? 'wrong' : 'unreachable';
  return { check, verdict, found: error.message, fix };
}
