/**
 * Statements compiled once and run many times. Kysely builds and types them; only the values change between runs, so the
 * text stays the same and the driver's prepared statement is found again.
 */
import type { Compilable, Kysely } from 'kysely';
import type { Schema } from './schema.ts';

export interface Statement {
  sql: string;
  parameters: readonly unknown[];
}

/** Stands in a compiled statement where a value goes. */
class Slot {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

export class StatementCache {
  readonly #builder: Kysely<Schema>;
  readonly #compiled = new Map<string, Statement>();

  constructor(builder: Kysely<Schema>) {
    this.#builder = builder;
  }

  /**
   * `key` names the statement's shape: two calls with one key must build the same text. `build` is called once per key,
   * with a placeholder for each value, typed as the value it stands for.
   */
  get<Values extends object>(
    key: string,
    values: Values,
    build: (db: Kysely<Schema>, slots: Values) => Compilable,
  ): Statement {
    let compiled = this.#compiled.get(key);
    if (!compiled) {
      const slots = Object.fromEntries(
        Object.keys(values).map((name) => [name, new Slot(name)]),
      ) as unknown as Values;
      const { sql, parameters } = build(this.#builder, slots).compile();
      compiled = { sql, parameters };
      this.#compiled.set(key, compiled);
    }
    const given = values as Record<string, unknown>;
    return {
      sql: compiled.sql,
      parameters: compiled.parameters.map((parameter) =>
        parameter instanceof Slot ? given[parameter.name] : parameter,
      ),
    };
  }
}
