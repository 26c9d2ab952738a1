/**
 * The schema and how a database gets it. Each migration is SQL for both stores, written once with the few words in which
 * they differ; a released one is never edited.
 */
import { sql } from 'kysely';
import type { Kysely } from 'kysely';
import type { Schema } from './schema.ts';
import type { Store } from './store.ts';
import { EVERY_STATE } from './transitions.ts';

type Words = Record<'integer' | 'bytes' | 'identity' | 'rowless' | 'strict', string>;

const WORDS: Record<Store['kind'], Words> = {
  sqlite: {
    integer: 'integer',
    bytes: 'blob',
    identity: 'integer primary key autoincrement',
    rowless: ' strict, without rowid',
    strict: ' strict',
  },
  postgres: {
    integer: 'bigint',
    bytes: 'bytea',
    identity: 'bigint generated always as identity primary key',
    rowless: '',
    strict: '',
  },
};

interface Migration {
  version: number;
  name: string;
  statements: (words: Words) => string[];
  /** What only one of the stores needs. */
  only: Record<Store['kind'], string[]>;
}

const STATES = EVERY_STATE.map((state) => `'${state}'`).join(', ');

const operations = ({ integer, rowless, strict }: Words): string[] => [
  `create table operation (
     operation_id text not null primary key,
     tenant text not null,
     subject text not null,
     action text not null,
     key text not null,
     keyed ${integer} not null check (keyed in (0, 1)),
     contract_version ${integer} not null,
     effect text not null check (effect in ('safe', 'conditional', 'unsafe')),
     state text not null check (state in (${STATES})),
     ordinal ${integer} not null check (ordinal >= 1),
     task_id text not null,
     attempt ${integer} not null check (attempt >= 0),
     generation ${integer} not null check (generation >= 0),
     claimed_until ${integer},
     attempt_deadline ${integer},
     executions ${integer} not null,
     fingerprint_sent text not null,
     fingerprint_input text not null,
     arguments text not null,
     result text,
     failure text,
     attention_about text check (attention_about in ('effect', 'rollback')),
     task_end text,
     late_outcome text,
     parent_operation_id text references operation (operation_id),
     attachable ${integer} not null check (attachable in (0, 1)),
     created_at ${integer} not null,
     updated_at ${integer} not null,
     check ((state = 'attention') = (attention_about is not null))
   )${strict}`,
  `create index operation_task on operation (task_id)`,
  `create index operation_tenant on operation (tenant, created_at)`,
  `create index operation_open on operation (tenant, created_at) where task_end is null`,
  `create index operation_parent on operation (parent_operation_id) where parent_operation_id is not null`,
  `create unique index operation_attach on operation (tenant, subject, action, fingerprint_input) where attachable = 1`,
  `create table attempt (
     operation_id text not null references operation (operation_id),
     generation ${integer} not null,
     ordinal ${integer} not null,
     attempt ${integer} not null,
     task_id text not null,
     claimed_at ${integer} not null,
     executing ${integer} not null check (executing in (0, 1)),
     outcome text,
     finished_at ${integer},
     primary key (operation_id, generation)
   )${rowless}`,
];

const records = ({ integer, bytes, identity, rowless, strict }: Words): string[] => [
  `create table audit_head (
     task_id text not null primary key,
     tenant text not null,
     seq ${integer} not null,
     hash text not null,
     created_at ${integer} not null
   )${rowless}`,
  `create index audit_head_tenant on audit_head (tenant, created_at)`,
  `create table audit (
     task_id text not null references audit_head (task_id),
     seq ${integer} not null check (seq >= 1),
     operation_id text not null,
     tenant text not null,
     type text not null,
     at text not null,
     data text not null,
     hash text not null,
     primary key (task_id, seq)
   )${rowless}`,
  `create table fence (
     resource text not null primary key,
     fence ${integer} not null,
     updated_at ${integer} not null
   )${rowless}`,
  `create table outbox (
     id ${identity},
     type text not null,
     task_id text not null,
     operation_id text not null,
     tenant text not null,
     action text not null,
     message text not null,
     data text not null,
     created_at ${integer} not null,
     attempts ${integer} not null default 0,
     lease_until ${integer},
     token text,
     sent_at ${integer},
     last_error text
   )${strict}`,
  `create index outbox_unsent on outbox (id) where sent_at is null`,
  `create index outbox_tenant on outbox (tenant, id)`,
  `create table payload (
     tenant text not null,
     sha256 text not null,
     bytes ${integer} not null,
     value ${bytes} not null,
     created_at ${integer} not null,
     primary key (tenant, sha256)
   )${strict}`,
];

const standingRules = ({ integer, rowless }: Words): string[] => [
  `create table standing_rule (
     id text not null primary key,
     tenant text not null,
     action text not null,
     contract_version ${integer} not null,
     covers text not null,
     made_by text not null,
     roles text not null,
     reason text,
     task_id text,
     made_at ${integer} not null,
     expires_at ${integer} not null,
     revoked_at ${integer},
     revoked_by text,
     revoke_reason text,
     check ((revoked_at is null) = (revoked_by is null))
   )${rowless}`,
  `create index standing_rule_action on standing_rule (tenant, action, made_at)`,
  `create index operation_edited on operation (tenant, subject, action, fingerprint_input) where edited is not null`,
];

const remoteTasks = ({ integer, rowless }: Words): string[] => [
  `create table remote_task (
     operation_id text not null primary key references operation (operation_id),
     task_id text not null,
     tenant text not null,
     action text not null,
     server text not null,
     tool text not null,
     remote_id text not null,
     poll_interval_ms ${integer} not null,
     ttl_ms ${integer},
     ttl_until ${integer},
     in_doubt_before ${integer} not null check (in_doubt_before in (0, 1)),
     phase text not null check (phase in ('working', 'cancelling', 'cancel_sent', 'ended')),
     seen text,
     result text,
     answered text not null,
     failures ${integer} not null check (failures >= 0),
     last_error text,
     seq ${integer} not null,
     poll_due_at ${integer} not null,
     last_polled_at ${integer},
     cancel_requested_at ${integer},
     cancel_sent_at ${integer},
     worker text,
     token text,
     claimed_for text check (claimed_for in ('poll', 'cancel', 'answer')),
     lease_until ${integer},
     started_at ${integer} not null,
     updated_at ${integer} not null
   )${rowless}`,
  `create index remote_task_open on remote_task (tenant, poll_due_at) where phase <> 'ended'`,
];

const upstreams = ({ integer, rowless, strict }: Words): string[] => [
  `create table upstream (
     identity text not null primary key,
     tools text not null,
     gone text not null,
     seen_at ${integer} not null
   )${rowless}`,
  `create table upstream_before (
     operation_id text not null primary key,
     tenant text not null,
     value text not null,
     kept_at ${integer} not null
   )${strict}`,
];

/** S10.1: the database itself refuses to change or drop an entry, `INSERT OR REPLACE` included. */
const APPEND_ONLY: Migration['only'] = {
  sqlite: [
    `create trigger audit_no_update before update on audit
       begin select raise(abort, 'audit is append-only'); end`,
    `create trigger audit_no_delete before delete on audit
       begin select raise(abort, 'audit is append-only'); end`,
    `create trigger audit_no_replace before insert on audit
       when exists (select 1 from audit where task_id = new.task_id and seq = new.seq)
       begin select raise(abort, 'audit is append-only'); end`,
  ],
  postgres: [
    `create function audit_refuse() returns trigger language plpgsql as
       $$ begin raise exception 'audit is append-only'; end $$`,
    `create trigger audit_no_change before update or delete on audit
       for each row execute function audit_refuse()`,
    `create trigger audit_no_truncate before truncate on audit
       for each statement execute function audit_refuse()`,
  ],
};

const MIGRATIONS: readonly Migration[] = [
  {
    version: 1,
    name: 'operations, audit, fences, outbox, payloads',
    statements: (words) => [...operations(words), ...records(words)],
    only: APPEND_ONLY,
  },
  {
    version: 2,
    name: 'arguments that an approver edited',
    statements: () => ['alter table operation add column edited text'],
    only: { sqlite: [], postgres: [] },
  },
  {
    version: 3,
    name: 'alerts that wait for their next delivery, and dead letters',
    statements: ({ integer }) => [
      `alter table outbox add column due_at ${integer} not null default 0`,
      `alter table outbox add column dead_at ${integer}`,
      'drop index outbox_unsent',
      'create index outbox_waiting on outbox (due_at, id) where sent_at is null and dead_at is null',
    ],
    only: { sqlite: [], postgres: [] },
  },
  {
    version: 4,
    name: 'standing rules, calls by what an approver edited',
    statements: standingRules,
    only: { sqlite: [], postgres: [] },
  },
  {
    version: 5,
    name: 'tasks that other servers keep',
    statements: remoteTasks,
    only: { sqlite: [], postgres: [] },
  },
  {
    version: 6,
    name: 'other people’s servers: lists, and what was read before an effect',
    statements: upstreams,
    only: { sqlite: [], postgres: [] },
  },
];

/** The schema that this code reads and writes. */
export const SCHEMA_VERSION = Math.max(...MIGRATIONS.map(({ version }) => version));

/** Any number, the same in every process: whoever migrates holds the lock of that name. */
const ADVISORY_LOCK = 0x484f4c44;

/** Brings the schema to this version; concurrent callers wait for one another. A newer schema is left alone. */
export function migrate(store: Store): Promise<{ from: number; to: number }> {
  return store.transaction(
    async (tx) => {
      const run = (text: string) => sql.raw(text).execute(tx.kysely);
      if (store.kind === 'postgres') await run(`select pg_advisory_xact_lock(${ADVISORY_LOCK})`);
      const { integer, strict } = WORDS[store.kind];
      await run(
        `create table if not exists migration (
           version ${integer} not null primary key, name text not null, applied_at ${integer} not null)${strict}`,
      );
      const from = await schemaVersion(tx.kysely);
      for (const migration of MIGRATIONS.filter(({ version }) => version > from)) {
        for (const text of [...migration.statements(WORDS[store.kind]), ...migration.only[store.kind]])
          await run(text);
        const { version, name } = migration;
        await tx.kysely
          .insertInto('migration')
          .values({ version, name, applied_at: await tx.now() })
          .execute();
      }
      return { from, to: Math.max(from, SCHEMA_VERSION) };
    },
    { afterLostCommit: 'repeat', retry: true },
  );
}

/** 0 for an empty `migration` table. Throws when there is none. */
export async function schemaVersion(db: Kysely<Schema>): Promise<number> {
  const { version } = await db
    .selectFrom('migration')
    .select((eb) => eb.fn.max('version').as('version'))
    .executeTakeFirstOrThrow();
  return Number(version ?? 0);
}

/** The DDL of one store, for docs/ledger.md. */
export function schemaText(kind: Store['kind']): string {
  return MIGRATIONS.flatMap(({ statements, only }) => [...statements(WORDS[kind]), ...only[kind]])
    .map((text) => `${text.replace(/^ {5}/gm, '  ').replace(/^ {3}\)/gm, ')')};`)
    .join('\n');
}
