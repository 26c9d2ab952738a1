// Who may import whom, read off the import statements (types included). What workflow code reaches at run time is
// checked by .dependency-cruiser.runtime.cjs, which leaves `import type` out and follows every path.
//
// Each top folder is an execution environment. A folder may import itself and what MAY_IMPORT names, nothing else.

/** Local paths each part may import besides itself. */
const MAY_IMPORT = {
  'src/task': [],
  'src/contract': ['src/task'],
  'src/procedure': ['src/task', 'src/contract'],
  'src/ledger': ['src/contract', 'src/task'],
  'src/operation': ['src/contract', 'src/ledger', 'src/task'],
  'src/remote': ['src/contract', 'src/task', 'src/ledger'],
  'src/embedded': [],
  'src/client': ['src/contract', 'src/task', 'src/ledger', 'workflows/messages\\.ts$'],
  'src/gateway': ['src/contract', 'src/task', 'src/client'],
  'src/mcp-client': ['src/contract', 'src/task'],
  'src/upstream': ['src/contract', 'src/task', 'src/mcp-client'],
  'src/console': ['src/contract', 'src/task', 'src/client'],
  workflows: ['src/task', 'src/procedure', 'src/contract'],
  activities: ['src/contract', 'src/task', 'src/operation', 'src/ledger', 'src/remote'],
};

const asPath = (part) => (part.endsWith('$') ? `^${part}` : `^${part}/`);

const direction = Object.entries(MAY_IMPORT).map(([part, allowed]) => ({
  name: `${part.replace('src/', '')}-imports-only-its-own`,
  severity: 'error',
  comment: `${part} may import ${allowed.length ? allowed.join(', ') : 'nothing of ours'}`,
  from: { path: asPath(part) },
  to: {
    path: '^(src|workflows|activities|worker|test|examples|bench|scripts)/',
    pathNot: [part, ...allowed].map(asPath),
  },
}));

const SHIPPED = '^(src|workflows|activities|worker)/';

module.exports = {
  forbidden: [
    ...direction,
    {
      name: 'workflows-see-types-of-contract-only',
      severity: 'error',
      comment: 'workflow code is replayed: a contract may change under it, so it may know its types only',
      from: { path: '^(workflows|src/procedure)/' },
      to: { path: '^src/contract/', dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'workflows-npm',
      severity: 'error',
      from: { path: '^workflows/' },
      to: {
        dependencyTypes: ['npm', 'npm-dev', 'npm-optional', 'npm-peer', 'npm-no-pkg', 'core'],
        pathNot: 'node_modules/@temporalio/(workflow|common)/',
      },
    },
    {
      name: 'task-is-pure',
      severity: 'error',
      comment: 'src/task imports nothing: no package, no Node module, types included',
      from: { path: '^src/task/' },
      to: { pathNot: '^src/task/' },
    },
    {
      name: 'operation-knows-no-temporal',
      severity: 'error',
      from: { path: '^src/(operation|ledger|contract|remote)/' },
      to: { path: 'node_modules/@temporalio/' },
    },
    {
      name: 'worker-is-for-composition-roots',
      severity: 'error',
      from: { path: SHIPPED, pathNot: '^(worker|src/cli|src/testing)/' },
      to: { path: '^worker/' },
    },
    {
      name: 'embedded-is-for-cli-and-testing',
      severity: 'error',
      from: { path: SHIPPED, pathNot: '^src/(embedded|cli|testing)/' },
      to: { path: '^src/embedded/' },
    },
    {
      name: 'cli-is-an-end',
      severity: 'error',
      from: { path: SHIPPED, pathNot: '^src/cli/' },
      to: { path: '^src/cli/' },
    },
    {
      name: 'tasks-extension-has-one-seam',
      severity: 'error',
      from: { path: '^src/', pathNot: '^src/gateway/tasks/' },
      to: { path: '^src/gateway/tasks/', pathNot: '^src/gateway/tasks/index\\.ts$' },
    },
    {
      name: 'only-tests-import-test',
      severity: 'error',
      from: { pathNot: '^test/' },
      to: { path: '^test/', pathNot: '^test/closing-line(-reporter)?\\.ts$' },
    },
    {
      name: 'no-circular',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-unresolvable',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true, pathNot: '^holdfast' },
    },
    {
      name: 'shipped-code-needs-no-dev-dependency',
      severity: 'error',
      from: { path: SHIPPED, pathNot: '\\.test\\.ts$' },
      to: { dependencyTypes: ['npm-dev', 'npm-no-pkg'], dependencyTypesNot: ['type-only'] },
    },
  ],
  options: {
    doNotFollow: { path: ['node_modules', '^dist/'] },
    exclude: { path: '^dist/' },
    tsPreCompilationDeps: 'specify',
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'node', 'types', 'default'],
      extensions: ['.ts', '.js', '.mjs', '.cjs', '.json', '.d.ts'],
    },
  },
};
