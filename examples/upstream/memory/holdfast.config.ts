// @modelcontextprotocol/server-memory: a knowledge graph whose server says "done" to more than it does.
import { defineConfig } from '../../../src/index.ts';

const nodes = (names: string) => ({ tool: 'open_nodes', args: { names } });
const named = nodes('args.entities.map(e, e.name)');
const graph = { tool: 'read_graph' };

const hasAll = (entities: string) =>
  `args.entities.all(e, ${entities}.exists(f, f.name == e.name && f.entityType == e.entityType && f.observations == e.observations))`;
const hasRelation = (relations: string) =>
  `${relations}.exists(f, f.from == r.from && f.to == r.to && f.relationType == r.relationType)`;
const isNew =
  '!o.contents.exists(c, answer.structured.entities.exists(e, e.name == o.entityName && c in e.observations))';
const observed =
  'args.observations.all(o, o.contents.all(c, answer.structured.entities.exists(e, e.name == o.entityName && c in e.observations)))';
const gone = 'answer.structured.entities.size() == 0';

/** One at a time: the server reads its file, changes it and writes it back without a lock, and loses one of two at once. A resource is a tenant's own: give each tenant a file of its own. */
const resource = "'memory'";

export default defineConfig({
  actions: [],
  upstreams: {
    memory: {
      command: 'npx',
      args: ['-y', '@modelcontextprotocol/server-memory@2026.8.31'],
      env: { MEMORY_FILE_PATH: { env: 'MEMORY_FILE_PATH' } },
      safe: ['read_graph', 'search_nodes', 'open_nodes'],
      defaults: { deadlines: { attempt: '10s', settle: '5s' } },
      tools: {
        create_entities: {
          effect: 'conditional',
          key: { natural: 'the server keeps one entity of a name, and adds none to it' },
          resource,
          onCancel: 'rollback',
          precondition: {
            ...named,
            // It leaves out what is there already and says nothing of it; then undoing would delete somebody else's.
            holds:
              'answer.structured.entities.size() == 0 && args.entities.all(e, args.entities.filter(f, f.name == e.name).size() == 1)',
            reason: 'one of the names is taken, or there twice',
          },
          lookup: {
            ...named,
            applied: hasAll('answer.structured.entities'),
            notApplied: gone,
            conclusive: true,
            result: { entities: 'args.entities' },
          },
          verify: { ...named, verified: hasAll('answer.structured.entities') },
          rollback: {
            reads: { now: named },
            ways: [
              {
                // Not once others observed or related something to them: then a person is asked.
                when: `${hasAll('reads.now.structured.entities')} && reads.now.structured.relations.size() == 0`,
                tool: 'delete_entities',
                args: { entityNames: 'args.entities.map(e, e.name)' },
              },
            ],
          },
          verifyRollback: { ...named, verified: gone },
        },
        create_relations: {
          effect: 'conditional',
          key: { natural: 'the server keeps one relation of a kind between two names' },
          resource,
          onCancel: 'rollback',
          precondition: {
            ...graph,
            holds: `!args.relations.exists(r, ${hasRelation('answer.structured.relations')})`,
            reason: 'one of the relations is there already',
          },
          lookup: {
            ...graph,
            applied: `args.relations.all(r, ${hasRelation('answer.structured.relations')})`,
            notApplied: `!args.relations.exists(r, ${hasRelation('answer.structured.relations')})`,
            conclusive: true,
            result: { relations: 'args.relations' },
          },
          verify: {
            ...graph,
            verified: `args.relations.all(r, ${hasRelation('answer.structured.relations')})`,
          },
          rollback: { tool: 'delete_relations', args: { relations: 'args.relations' } },
          verifyRollback: {
            ...graph,
            verified: `!args.relations.exists(r, ${hasRelation('answer.structured.relations')})`,
          },
        },
        add_observations: {
          effect: 'conditional',
          key: { natural: 'the server keeps one observation of a text on an entity' },
          resource,
          onCancel: 'rollback',
          precondition: {
            ...nodes('args.observations.map(o, o.entityName)'),
            holds: `args.observations.all(o, ${isNew} && answer.structured.entities.exists(e, e.name == o.entityName))`,
            reason: 'an entity is not there, or has been observed so before',
          },
          refused: "result.text.endsWith('not found')",
          lookup: {
            ...nodes('args.observations.map(o, o.entityName)'),
            applied: observed,
            notApplied: `args.observations.all(o, ${isNew})`,
            conclusive: true,
            result: {
              results:
                "args.observations.map(o, {'entityName': o.entityName, 'addedObservations': o.contents})",
            },
          },
          verify: { ...nodes('args.observations.map(o, o.entityName)'), verified: observed },
          rollback: {
            tool: 'delete_observations',
            args: {
              deletions: "args.observations.map(o, {'entityName': o.entityName, 'observations': o.contents})",
            },
          },
          verifyRollback: {
            ...nodes('args.observations.map(o, o.entityName)'),
            verified: `args.observations.all(o, ${isNew})`,
          },
        },
        delete_entities: {
          effect: 'conditional',
          key: { natural: 'what is deleted stays deleted' },
          resource,
          onCancel: 'rollback',
          before: { old: nodes('args.entityNames') },
          precondition: {
            holds:
              'args.entityNames.all(n, before.old.structured.entities.filter(e, e.name == n).size() == 1)',
            reason: 'not each of them is there, once',
          },
          lookup: {
            ...nodes('args.entityNames'),
            applied: gone,
            notApplied: 'answer.text == before.old.text',
            conclusive: true,
            result: { success: 'true', message: "'Entities deleted'" },
          },
          verify: { ...nodes('args.entityNames'), verified: gone },
          rollback: {
            steps: [
              { tool: 'create_entities', args: { entities: 'before.old.structured.entities' } },
              // The server took them along.
              { tool: 'create_relations', args: { relations: 'before.old.structured.relations' } },
            ],
            remains: "'they stand at the end of the graph now, in another order'",
          },
          verifyRollback: {
            ...nodes('args.entityNames'),
            verified:
              'before.old.structured.entities.all(e, e in answer.structured.entities) && before.old.structured.relations.all(r, r in answer.structured.relations)',
          },
          approval: { when: 'args.entityNames.size() > 1', roles: ['operator'] },
        },
      },
    },
  },
});
