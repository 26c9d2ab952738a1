/**
 * What the ledger costs a call: planning, reservation, claim, commit and their audit, around an effect that does
 * nothing, without Temporal. As a share of a bare workflow with one activity, which takes its turns in between.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { planOperation } from '../../src/contract/plan-operation.ts';
import type { Ledger } from '../../src/ledger/ledger.ts';
import { openLedger } from '../../src/ledger/open-ledger.ts';
import { performOperation } from '../../src/operation/perform-operation.ts';
import { bareCall } from '../calls.ts';
import { figure } from '../figure.ts';
import type { Figure } from '../figure.ts';
import { ratio, takeTurns } from '../pairs.ts';
import type { Contender } from '../pairs.ts';
import { startPostgres } from '../postgres.ts';
import { shorter } from '../size.ts';
import type { Size } from '../size.ts';
import type { System } from '../system.ts';

const UNIT = '× bare workflow, one activity';

export async function ledgerFigures(system: System, size: Size): Promise<Figure[]> {
  const sqlite = await measured(system, size, 'SQLite', `sqlite:${join(system.folder, 'ledger-alone.db')}`);
  const postgres = await startPostgres();
  if (postgres.kind === 'none')
    return [sqlite, figure('ledger alone, PostgreSQL, p50', null, postgres.reason)];
  try {
    return [sqlite, await measured(system, size, 'PostgreSQL', postgres.url)];
  } finally {
    await postgres.stop();
  }
}

async function measured(system: System, size: Size, store: string, url: string): Promise<Figure> {
  const { holdfast, principal } = system;
  const ledger = await openLedger({ url });
  try {
    await ledger.migrate();
    const contenders = {
      ledger: protocolAlone(system, ledger),
      bare: bareCall(
        { client: holdfast.client, temporal: holdfast.temporal, principal, isEager: true },
        'bareActivity',
      ),
    };
    await takeTurns(contenders, shorter(size.ledger));
    const p50 = await takeTurns(contenders, size.ledger);
    return figure(`ledger alone, ${store}, p50`, ratio(p50.ledger, p50.bare), UNIT);
  } finally {
    await ledger.close();
  }
}

function protocolAlone({ config, principal }: System, ledger: Ledger): Contender {
  const action = config.actions.find(({ contract }) => contract.name === 'book_nothing');
  if (!action) throw new Error('the benchmark’s configuration lacks book_nothing');
  const deps = { ledger, handlers: action.handlers, contract: action.contract };
  const runtime = { signal: new AbortController().signal, heartbeat: () => undefined };
  return {
    async call() {
      const args = { sku: 'widget', quantity: 3 };
      const { plan, input, reservation } = planOperation(action, { args, principal, key: randomUUID() });
      const reserved = await ledger.reserve(reservation);
      if (reserved.kind !== 'fresh') throw new Error(`a new key was answered ${reserved.kind}`);
      const { taskId, ordinal } = reserved;
      const attempt = { attempt: 1, purpose: 'execute', inline: true, verifyFinal: false } as const;
      const request = { plan, input, taskId, ordinal, journal: [], ...attempt };
      const outcome = await performOperation(deps, request, runtime);
      if (outcome.kind !== 'committed') throw new Error(`the operation ended ${outcome.kind}`);
    },
  };
}
