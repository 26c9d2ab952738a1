// What replayed code reaches at run time, along any path: `workflows/`, `src/task`, `src/procedure`, @temporalio/workflow and
// @temporalio/common, nothing more. `import type` leaves no trace at run time and is not followed.
const { options } = require('./.dependency-cruiser.cjs');

module.exports = {
  forbidden: [
    {
      name: 'replayed-code-reaches-only-pure-code',
      severity: 'error',
      from: { path: '^workflows/' },
      to: {
        reachable: true,
        path: '.',
        pathNot: '^(workflows/|src/task/|src/procedure/|.*node_modules/@temporalio/(workflow|common)/)',
      },
    },
    {
      name: 'task-reaches-only-itself',
      severity: 'error',
      from: { path: '^src/task/' },
      to: { reachable: true, path: '.', pathNot: '^src/task/' },
    },
  ],
  options: { ...options, tsPreCompilationDeps: false },
};
