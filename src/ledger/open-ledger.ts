/** The ledger over a store: which transaction each method runs in, and what may be repeated. */
import assert from 'node:assert/strict';
import { AsyncLocalStorage } from 'node:async_hooks';
import { existsSync } from 'node:fs';
import { HoldfastError } from '../contract/error.ts';
import * as claims from './claim.ts';
import * as close from './close.ts';
import { advanceFence, newestFence } from './fence.ts';
import type { Ledger, LedgerOptions, Transitions } from './ledger.ts';
import { SCHEMA_VERSION, migrate, schemaVersion } from './migrations.ts';
import type { Outbox } from './alert.ts';
import * as outbox from './outbox.ts';
import { getPayload, putPayload } from './payload.ts';
import { PostgresStore } from './postgres-store.ts';
import * as procedure from './procedure.ts';
import * as reads from './reads.ts';
import * as remote from './remote-task.ts';
import type { RemoteTasks } from './remote-tasks.ts';
import { reserve } from './reserve.ts';
import * as rollback from './rollback.ts';
import * as settle from './settle.ts';
import * as upstream from './upstream-memory.ts';
import type { UpstreamMemory } from './upstream-memory.ts';
import * as rules from './standing-rules.ts';
import { SqliteStore } from './sqlite-store.ts';
import type { AfterLostCommit, Queries, Store, Tx } from './store.ts';
import { isDriverError, wrapStoreError } from './store-error.ts';
import { Unit } from './unit.ts';
import { verifyAudit } from './verify-audit.ts';

/** Opens the store; changes nothing in it before `migrate`. Throws `ledger_unavailable` or `ledger_unsuitable`. */
export async function openLedger(options: LedgerOptions): Promise<Ledger> {
  const store = await openStore(options).catch((error: unknown) => Promise.reject(wrapStoreError(error)));
  return ledgerOver(store, options.onTransaction ?? (() => undefined));
}

async function openStore({
  url,
  nowMs,
  allowEphemeral = false,
  mustExist = false,
}: LedgerOptions): Promise<Store> {
  if (url.startsWith('sqlite:')) {
    const path = url.slice('sqlite:'.length);
    const isEphemeral = path === '' || path === ':memory:';
    if (isEphemeral && !allowEphemeral) {
      throw new HoldfastError(
        'ledger_unsuitable',
        'A ledger in memory dies with its process. Use `sqlite:FILE`, or PostgreSQL.',
      );
    }
    if (mustExist && !isEphemeral && !existsSync(path))
      throw new HoldfastError(
        'ledger_unsuitable',
        `There is no ledger at ${path}. Run \`holdfast migrate\`.`,
      );
    return SqliteStore.open({ path: isEphemeral ? ':memory:' : path, nowMs: nowMs ?? Date.now });
  }
  // An address that can't be read is told by name only: the driver's error would repeat it, password included.
  if (/^postgres(ql)?:\/\//.test(url) && URL.canParse(url)) return new PostgresStore(url);
  throw new HoldfastError(
    'invalid_configuration',
    'The ledger’s address is neither `sqlite:FILE` nor `postgres://…`.',
    {
      details: { setting: 'HOLDFAST_DATABASE_URL' },
    },
  );
}

/** Times a transaction; its wait for a connection or for its turn is part of it. */
async function timed<T>(told: Told, transaction: () => Promise<T>): Promise<T> {
  const begun = performance.now();
  let isCommitted = false;
  try {
    const answer = await transaction();
    isCommitted = true;
    return answer;
  } finally {
    told(performance.now() - begun, isCommitted);
  }
}

type Told = NonNullable<LedgerOptions['onTransaction']>;

/** Runs one method's work in the transaction it belongs to. */
type Run = <T>(work: (unit: Unit) => Promise<T>, afterLostCommit?: AfterLostCommit) => Promise<T>;

/**
 * What happens when the connection is lost during a commit. `repeat` where a second run finds what the first did and
 * answers alike; `report` where it would be taken for somebody else's (a claim would be busy, a note said twice): the
 * caller is told `ledger_unavailable` with outcome `unknown`, and its next, higher attempt reconciles.
 */
function transitionsOver(run: Run, queries: Queries): Transitions {
  return {
    reserve: (request) => run((unit) => reserve(unit, request), 'repeat'),
    find: (operationId) => reads.find(queries, operationId),
    claim: (request) => run((unit) => claims.claim(unit, request)),
    intend: (claim, options) => run((unit) => claims.intend(unit, claim, options)),
    renew: (claim, claimMs) => claims.renew(queries, claim, claimMs),
    owns: (claim) => claims.owns(queries, claim),
    refuse: (request, reason, end) => run((unit) => settle.refuse(unit, request, reason, end), 'repeat'),
    release: (claim, failure) => run((unit) => settle.release(unit, claim, failure), 'repeat'),
    fail: (claim, failure, end, alert) =>
      run((unit) => settle.fail(unit, claim, failure, end, alert), 'repeat'),
    storeApplied: (claim, result, how) =>
      run((unit) => settle.storeApplied(unit, claim, result, how), 'repeat'),
    commit: (claim, result, options) => run((unit) => settle.commit(unit, claim, result, options), 'repeat'),
    mismatched: (claim, result, reason, alert) =>
      run((unit) => settle.mismatched(unit, claim, result, reason, alert), 'repeat'),
    raiseAttention: (claim, failure, alert, result) =>
      run((unit) => settle.raiseAttention(unit, claim, failure, alert, result), 'repeat'),
    claimRollback: (request) => run((unit) => rollback.claimRollback(unit, request)),
    finishRollback: (claim, parent, remains, end) =>
      run((unit) => rollback.finishRollback(unit, claim, parent, remains, end), 'repeat'),
    releaseRollback: (claim, failure) =>
      run((unit) => rollback.releaseRollback(unit, claim, failure), 'repeat'),
    rollbackAttention: (claim, parent, failure, alert) =>
      run((unit) => rollback.rollbackAttention(unit, claim, parent, failure, alert), 'repeat'),
    closeTask: (request) => run((unit) => close.closeTask(unit, request), 'repeat'),
    resolve: (request) => run((unit) => close.resolve(unit, request)),
    recordLate: (claim, outcome, alert) =>
      run((unit) => close.recordLate(unit, claim, outcome, alert), 'repeat'),
    reserveStep: (request) => run((unit) => procedure.reserveStep(unit, request), 'repeat'),
    endProcedure: (request) => run((unit) => procedure.endProcedure(unit, request), 'repeat'),
    recover: (operationId, taskId) => run((unit) => close.recover(unit, operationId, taskId), 'repeat'),
    recordEnd: (taskId, end) => run((unit) => close.recordEnd(unit, taskId, end), 'repeat'),
    appendAudit: (request) => run((unit) => close.appendAudit(unit, request), 'repeat'),
  };
}

/** Set inside `Ledger.transaction`, where a call of the ledger itself would wait for the transaction it is part of. */
const insideTransaction = new AsyncLocalStorage<true>();

function ledgerOver(store: Store, told: Told): Ledger {
  const listeners = new Set<() => void>();
  let closing: Promise<void> | null = null;
  const announce = () => {
    for (const listener of listeners) listener();
  };

  const guard = async <T>(work: () => Promise<T>, wrap = wrapStoreError): Promise<T> => {
    assert(
      !insideTransaction.getStore(),
      'inside Ledger.transaction only its transitions and its tx may be used (S2.8)',
    );
    return work().catch((error: unknown) => Promise.reject(wrap(error)));
  };

  const inTransaction = <T>(work: (tx: Tx) => Promise<T>, afterLostCommit: AfterLostCommit): Promise<T> =>
    guard(() => timed(told, () => store.transaction(work, { afterLostCommit, retry: true })));

  const run: Run = async (work, afterLostCommit = 'report') => {
    let alerted = false;
    const answer = await inTransaction(async (tx) => {
      alerted = false;
      return runUnit(tx, work, () => (alerted = true));
    }, afterLostCommit);
    if (alerted) announce();
    return answer;
  };

  const read = <T>(work: (db: Store['reads']) => Promise<T>): Promise<T> => guard(() => work(store.reads));

  const queries: Queries = {
    statements: store.statements,
    clock: store.clock,
    query: (statement) => guard(() => timed(told, () => store.query(statement))),
    read: (statement) => guard(() => store.read(statement)),
  };

  return {
    kind: store.kind,
    ...transitionsOver(run, queries),
    transaction: (work) => guard(() => timed(told, () => transact(store, work, announce)), passOthers),
    ...readsOver(read, queries, store),
    makeStandingRule: (rule) => run((unit) => rules.makeStandingRule(unit, rule), 'repeat'),
    revokeStandingRule: (request) => run((unit) => rules.revokeStandingRule(unit, request), 'repeat'),
    putPayload: (tenant, value) => inTransaction((tx) => putPayload(tx, tenant, value), 'repeat'),
    advanceFence: (resource, fence) => inTransaction((tx) => advanceFence(tx, resource, fence), 'repeat'),
    ...outboxOver({ store, run, inTransaction, read, announce }),
    ...remoteTasksOver({ run, inTransaction, read }),
    ...upstreamMemoryOver({ inTransaction, read }),
    onOutbox: (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    now: () => guard(() => store.now()),
    check: () => guard(() => check(store)),
    migrate: () => guard(() => store.checkPlace().then(() => migrate(store))),
    close: () => guard(() => (closing ??= store.close())),
  };
}

type Read = <T>(work: (db: Store['reads']) => Promise<T>) => Promise<T>;

function readsOver(read: Read, queries: Queries, store: Pick<Store, 'now'>) {
  return {
    findByTask: (taskId) => reads.findByTask(queries, taskId),
    findEdited: (call) => read(async (db) => reads.findEdited(db, call, await store.now())),
    list: (filter) => read((db) => reads.list(db, filter)),
    attempts: (operationId) => read((db) => reads.attempts(db, operationId)),
    audit: (filter) => reads.audit(read, queries, filter),
    auditChains: (tenant) => reads.auditChains(read, queries, tenant),
    verifyAudit: (filter) => read((db) => verifyAudit(db, filter)),
    standingRules: (filter) => read(async (db) => rules.standingRules(db, filter, await store.now())),
    newestFence: (resource) => read((db) => newestFence(db, resource)),
    getPayload: (tenant, sha256) => read((db) => getPayload(db, tenant, sha256)),
  } satisfies Partial<Ledger>;
}

interface OutboxPlace {
  store: Store;
  run: Run;
  inTransaction: <T>(work: (tx: Tx) => Promise<T>, afterLostCommit: AfterLostCommit) => Promise<T>;
  read: Read;
  announce: () => void;
}

function outboxOver({ store, run, inTransaction, read, announce }: OutboxPlace): Omit<Outbox, 'onOutbox'> {
  return {
    claimOutbox: (limit, leaseMs) =>
      inTransaction((tx) => outbox.claimOutbox(tx, store.kind, limit, leaseMs), 'report'),
    markSent: (id, token) => inTransaction((tx) => outbox.markSent(tx, id, token), 'repeat'),
    giveBack: (id, token, error, delayMs) =>
      inTransaction((tx) => outbox.giveBack(tx, id, token, error, delayMs), 'report'),
    bury: (id, token, error) => inTransaction((tx) => outbox.bury(tx, id, token, error), 'repeat'),
    outboxDueMs: () => read(async (db) => outbox.dueMs(db, await store.now())),
    redeliver: async (request) => {
      const ids = await run((unit) => outbox.redeliver(unit, request));
      if (ids.length > 0) announce();
      return ids;
    },
    alerts: (filter) => read((db) => outbox.alerts(db, filter)),
  };
}

/** A claim whose commit was lost is nobody's until its lease has passed; every other repeat finds what the first did. */
function remoteTasksOver({ run, inTransaction, read }: Omit<OutboxPlace, 'store' | 'announce'>): RemoteTasks {
  return {
    registerRemoteTask: (claim, task) => run((unit) => remote.register(unit, claim, task), 'repeat'),
    findRemoteTask: (operationId) => read((db) => remote.find(db, operationId)),
    askRemoteCancel: (operationId) => run((unit) => remote.askCancel(unit, operationId), 'repeat'),
    claimRemoteCall: (request) => inTransaction((tx) => remote.claimCall(tx, request), 'report'),
    renewRemoteCall: (claim, leaseMs) =>
      inTransaction((tx) => remote.renewCall(tx, claim, leaseMs), 'repeat'),
    settleRemoteCall: (claim, outcome) => run((unit) => remote.settleCall(unit, claim, outcome), 'repeat'),
    releaseRemoteCall: (claim) => inTransaction((tx) => remote.releaseCall(tx, claim), 'report'),
  };
}

function upstreamMemoryOver({
  inTransaction,
  read,
}: Pick<OutboxPlace, 'inTransaction' | 'read'>): UpstreamMemory {
  return {
    upstreamList: (identity) => read((db) => upstream.upstreamList(db, identity)) as never,
    keepUpstreamList: (identity, tools) =>
      inTransaction((tx) => upstream.keepUpstreamList(tx, identity, tools), 'repeat') as never,
    keepBefore: (operationId, tenant, before) =>
      inTransaction((tx) => upstream.keepBefore(tx, operationId, tenant, before), 'repeat'),
    recallBefore: (operationId) => read((db) => upstream.recallBefore(db, operationId)),
    forgetBefore: (operationId) => inTransaction((tx) => upstream.forgetBefore(tx, operationId), 'repeat'),
  };
}

/** What the caller's own work throws is the caller's, unless a driver threw it. */
const passOthers = (error: unknown): unknown => (isDriverError(error) ? wrapStoreError(error) : error);

async function runUnit<T>(tx: Tx, work: (unit: Unit) => Promise<T>, onAlert: () => void): Promise<T> {
  const unit = new Unit(tx, onAlert);
  const answer = await work(unit);
  await unit.flush();
  return answer;
}

/** A handler's transaction takes well under a second (S2.8); on SQLite every other writer waits for it. */
const WORK_BOUND_MS = 10_000;

/** S2.8. Never run twice: what the caller's work did besides the database is not ours to repeat. */
async function transact<T>(
  store: Store,
  work: (transitions: Transitions, tx: unknown) => Promise<T>,
  announce: () => void,
): Promise<T> {
  let alerted = false;
  const answer = await store.transaction(
    (tx) => {
      const run: Run = (unitWork) => runUnit(tx, unitWork, () => (alerted = true));
      return insideTransaction.run(true, () => work(transitionsOver(run, tx), tx.kysely));
    },
    { afterLostCommit: 'report', retry: false, boundMs: WORK_BOUND_MS },
  );
  if (alerted) announce();
  return answer;
}

async function check(store: Store): Promise<{ version: number }> {
  await store.now();
  await store.checkPlace();
  const version = await schemaVersion(store.reads).catch((error: unknown) => {
    if (isDriverError(error) && isMissingTable(error)) return 0;
    throw error;
  });
  if (version !== SCHEMA_VERSION) {
    const advice =
      version < SCHEMA_VERSION ? 'Run `holdfast migrate`.' : 'Install the version of Holdfast that made it.';
    throw new HoldfastError(
      'ledger_unsuitable',
      `The ledger’s schema is version ${version}, not ${SCHEMA_VERSION}. ${advice}`,
      {
        details: { version, expected: SCHEMA_VERSION },
      },
    );
  }
  return { version };
}

/** PostgreSQL `undefined_table`; SQLite has no code of its own for it. */
function isMissingTable(error: unknown): boolean {
  const { code, message } = error as { code?: unknown; message: string };
  return code === '42P01' || (code === 'SQLITE_ERROR' && message.startsWith('no such table'));
}
