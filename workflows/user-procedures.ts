/** Stands where the bundler puts the file that the configuration's `procedures.code` names (worker/workflow-source.ts). */
export const none: readonly never[] = [];
